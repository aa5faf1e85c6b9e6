"""The application: routes, errors, limits, the page; and the server that runs it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from headgate.broker import problems
from headgate.broker.http import dry_run, errors, notifications, pictures, publish, subscriptions, system
from headgate.broker.http.gate import Gate
from headgate.broker.http.models import ProblemDetails
from headgate.broker.limits import protocol
from headgate.broker.service import Broker
from headgate.broker.settings import Settings
from headgate.errors import HeadgateError

log = logging.getLogger("headgate.broker")
WEB = Path(__file__).parents[1] / "web"
_POLICY = "default-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_STATUSES = (400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 421, 422, 429, 503)


def application(settings: Settings) -> FastAPI:
    broker = Broker(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await broker.start()
        try:
            yield
        finally:
            await broker.stop()

    answers: dict[int | str, dict[str, Any]] = {
        status: {"model": ProblemDetails, "content": {problems.MEDIA: {}}} for status in _STATUSES
    }
    app = FastAPI(
        title="Headgate",
        version="1",
        summary="Subscribe, publish, be notified.",
        lifespan=lifespan,
        responses=answers,
        docs_url=None,
        redoc_url=None,
    )
    app.state.broker = broker
    for module in (subscriptions, publish, notifications, errors, dry_run, pictures, system):
        app.include_router(module.router)
    app.add_exception_handler(HTTPException, _counted(broker, problems.of_refusal))
    app.add_exception_handler(RequestValidationError, _counted(broker, problems.of_validation))
    app.add_exception_handler(HeadgateError, _counted(broker, problems.of_headgate))
    app.add_exception_handler(Exception, _unexpected)
    app.add_middleware(Gate, settings=settings, refused=partial(_count_refusal, broker))

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(WEB / "index.html", headers={"Content-Security-Policy": _POLICY})

    app.mount("/web", StaticFiles(directory=WEB), name="web")
    return app


def _count_refusal(broker: Broker, status: int) -> None:
    broker.numbers.count("refused_total", 1, str(status))


def _counted(broker: Broker, answer: Any) -> Any:
    async def handle(request: Request, problem: Exception) -> Response:
        made: Response = answer(request, problem)
        _count_refusal(broker, made.status_code)
        return made

    return handle


async def _unexpected(request: Request, problem: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
    return problems.answer(500, "internal", "something went wrong here; it is in the broker's log")


def server(settings: Settings) -> uvicorn.Server:
    """The server, with its limits; `run` returns after a graceful end."""
    config = uvicorn.Config(
        application(settings),
        host=settings.host,
        port=settings.port,
        http=protocol(settings.idle_seconds, settings.stall_seconds),
        ws="websockets-sansio",
        log_config=None,
        access_log=False,
        limit_concurrency=20_000,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        server_header=False,
        ws_max_size=1 << 16,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )
    return Server(config)


class Server(uvicorn.Server):
    """Who listens is told of the end before the server waits for connections to end."""

    async def shutdown(self, sockets: Any = None) -> None:
        app: Any = self.config.app
        app.state.broker.hub.close()
        await super().shutdown(sockets)
