"""Delivery: server-sent events and WebSocket with resume, webhooks with their failures, throttles and caps."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.broker.running import Running, running, until
from websockets.sync.client import connect

from headgate.broker.client import BrokerError, Subscribed
from headgate.broker.delivery import webhook
from headgate.broker.delivery.push import pause
from headgate.broker.settings import Settings


class Receiver:
    """A webhook's other end. `answers` are the statuses it gives, the last one for ever."""

    def __init__(self, answers: list[int], location: str = "") -> None:
        self.answers = answers
        self.location = location
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    def notes(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


@contextmanager
def receiving(*answers: int, location: str = "") -> Iterator[Receiver]:
    made = Receiver(list(answers) or [200], location)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.got.append((dict(self.headers.items()), body))
            status = made.answers[0] if len(made.answers) == 1 else made.answers.pop(0)
            self.send_response(status)
            if made.location:
                self.send_header("Location", made.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hooked(broker: Running, url: str, text: str = "vol > 0", **more: Any) -> Subscribed:
    with broker.client() as client:
        return client.subscribe(text, stream="stock", delivery={"kind": "webhook", "url": url, **more})


def publish(broker: Running, *vols: int, name: str = "x") -> None:
    with broker.client() as client:
        client.publish("stock", [{"vol": v, "name": name} for v in vols])


def test_a_connection_that_breaks_goes_on_where_it_was(broker: Running) -> None:
    with broker.client() as client:
        mine = client.subscribe("vol > 100", stream="stock")
        publish(broker, 101, 102, 103)
        first = []
        for note in client.listen(mine.id, mine.ticket, since=0):
            first.append(note)
            if len(first) == 2:
                break
        publish(broker, 104)
        rest = []
        for note in client.listen(mine.id, mine.ticket, since=first[-1]["seq"]):
            rest.append(note)
            if len(rest) == 2:
                break
    assert [n["data"]["vol"] for n in first + rest] == [101, 102, 103, 104]
    assert len({n["id"] for n in first + rest}) == 4


def test_a_live_connection_gets_what_comes_and_ends_with_the_subscription(broker: Running) -> None:
    with broker.client() as client, broker.client() as other:
        mine = client.subscribe("vol > 200", stream="stock")
        got: list[int] = []
        listening = threading.Thread(
            target=lambda: got.extend(n["data"]["vol"] for n in client.listen(mine.id, mine.ticket)), daemon=True
        )
        listening.start()
        until(lambda: len(broker.broker.hub) == 1, "the connection")
        for vol in range(201, 221):
            publish(broker, vol)
        until(lambda: len(got) or broker.broker.numbers.value("delivered_total"), "the first")
        until(lambda: broker.broker.publisher.pending == 0, "matching")
        seq = broker.broker.store.logs.last_notification()
        until(lambda: broker.broker.tail.seq >= seq, "the tail")
        other.unsubscribe(mine.id, mine.ticket)
        listening.join(30)
    assert not listening.is_alive()
    assert got == list(range(201, 221))


def test_the_feed_of_a_key_has_all_its_subscriptions(broker: Running) -> None:
    with broker.client(broker.key()) as client:
        a = client.subscribe("vol = 301", stream="stock")
        b = client.subscribe("vol >= 301", stream="stock")
        publish(broker, 300, 301)
        found = []
        for note in client.feed(since=0):
            found.append(note["subscription"])
            if len(found) == 2:
                break
    assert sorted(found) == sorted([a.id, b.id])


def test_a_websocket_resumes_from_the_last_number(broker: Running) -> None:
    with broker.client() as client:
        mine = client.subscribe("vol > 400", stream="stock")
    publish(broker, 401, 402)
    at = f"{broker.url.replace('http', 'ws')}/v1/subscriptions/{mine.id}/socket"
    with connect(at) as socket:
        socket.send(json.dumps({"ticket": mine.ticket, "since": 0}))
        first = [json.loads(socket.recv(30)) for _ in range(2)]
    publish(broker, 403)
    with connect(at) as socket:
        socket.send(json.dumps({"ticket": mine.ticket, "since": first[-1]["seq"]}))
        last = json.loads(socket.recv(30))
    assert [n["data"]["vol"] for n in [*first, last]] == [401, 402, 403]
    with connect(at) as socket:
        socket.send(json.dumps({"ticket": "hgt_wrong"}))
        with pytest.raises(Exception, match="this ticket does not open this subscription"):
            socket.recv(30)


def test_a_websocket_may_be_quiet_for_longer_than_a_request_may(broker: Running) -> None:
    with broker.client() as client:
        mine = client.subscribe("vol > 450", stream="stock")
    at = f"{broker.url.replace('http', 'ws')}/v1/subscriptions/{mine.id}/socket"
    with connect(at) as socket:
        socket.send(json.dumps({"ticket": mine.ticket, "since": 0}))
        with pytest.raises(TimeoutError):
            socket.recv(2 * broker.broker.settings.idle_seconds)
        publish(broker, 451)
        assert json.loads(socket.recv(30))["data"]["vol"] == 451


def test_a_webhook_gets_signed_bodies(broker: Running) -> None:
    with receiving() as receiver:
        mine = hooked(broker, receiver.url, "vol = 501")
        publish(broker, 500, 501)
        until(lambda: receiver.got, "the call")
        headers, body = receiver.got[0]
    assert mine.signing_key is not None
    assert webhook.verify(mine.signing_key, body, headers["Headgate-Signature"], time.time())
    assert not webhook.verify(mine.signing_key, body + b" ", headers["Headgate-Signature"], time.time())
    assert not webhook.verify(mine.signing_key, body, headers["Headgate-Signature"], time.time() + 1000)
    assert not webhook.verify("hgw_other", body, headers["Headgate-Signature"], time.time())
    assert json.loads(body)["id"] == headers["Headgate-Notification"]


def test_a_webhook_that_fails_is_called_again_and_loses_nothing(broker: Running) -> None:
    with receiving(500, 200, 503, 200) as receiver:
        hooked(broker, receiver.url, "vol > 600 AND vol < 700")
        publish(broker, 601, 602, 603)
        until(lambda: len({n["id"] for n in receiver.notes()}) == 3, "three notifications")
    assert [n["data"]["vol"] for n in receiver.notes()] == [601, 601, 602, 602, 603]


def test_what_fails_too_often_is_a_dead_letter_and_can_be_delivered_again(broker: Running) -> None:
    with receiving(500, 500, 500, 200) as receiver, broker.http() as http:
        mine = hooked(broker, receiver.url, "vol > 700 AND vol < 800")
        publish(broker, 701, 702)
        proof = {"Authorization": f"Bearer {mine.ticket}"}
        letters = f"/v1/subscriptions/{mine.id}/letters"
        (letter,) = until(lambda: http.get(letters, headers=proof).json()["letters"], "the dead letter")
        assert (letter["reason"], letter["attempts"]) == ("it answered 500", 3)
        until(lambda: any(n["data"]["vol"] == 702 for n in receiver.notes()), "the next one")
        done = http.post(f"/v1/subscriptions/{mine.id}/redelivery", headers=proof).json()
        assert done == {"delivered": 1, "failures": []}
        assert receiver.notes()[-1]["data"]["vol"] == 701
        assert http.get(letters, headers=proof).json()["letters"] == []


def test_at_most_one_notification_for_a_key_and_an_interval(broker: Running) -> None:
    with receiving() as receiver:
        hooked(broker, receiver.url, "vol > 800 AND vol < 900", key="name", interval=3600)
        publish(broker, 801, 802, name="a")
        publish(broker, 803, name="b")
        publish(broker, 804, name="a")
        publish(broker, 805, name="c")
        until(lambda: any(n["data"]["vol"] == 805 for n in receiver.notes()), "the last")
    assert [(n["data"]["name"], n["data"]["vol"]) for n in receiver.notes()] == [("a", 801), ("b", 803), ("c", 805)]


def test_a_subscription_that_matches_too_much_is_paused_with_an_alarm(broker: Running) -> None:
    with broker.client() as client, broker.http() as http:
        mine = client.subscribe("vol >= 0", stream="stock", delivery={"cap": 20})
        proof = {"Headgate-Tickets": f"{mine.id}:{mine.ticket}"}
        publish(broker, *range(30))
        until(lambda: client.subscription(mine.id, mine.ticket)["state"] == "capped", "the cap")
        (alarm,) = http.get("/v1/alarms", headers=proof).json()["alarms"]
        assert alarm["reason"].startswith("more than 20 notifications in a minute")
        before = len(client.pull(mine.id, mine.ticket, since=0, limit=1000))
        publish(broker, *range(10))
        until(lambda: broker.broker.publisher.pending == 0, "matching")
        assert len(client.pull(mine.id, mine.ticket, since=0, limit=1000)) == before
        client.renew(mine.id, mine.ticket)
        publish(broker, 5)
        until(lambda: len(client.pull(mine.id, mine.ticket, since=0, limit=1000)) == before + 1, "matching again")
        client.unsubscribe(mine.id, mine.ticket)


def test_the_wait_between_attempts_doubles_and_has_jitter() -> None:
    settings = Settings("", Path(), b"", first_wait=1.0, longest_wait=60.0)
    for attempt, most in ((1, 1.0), (2, 2.0), (5, 16.0), (20, 60.0)):
        waits = [pause(attempt, settings) for _ in range(200)]
        assert most / 2 <= min(waits) < max(waits) <= most
        assert len(set(waits)) > 100


# -- where webhooks must not go; nothing is sent in these


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("strict")) as found:
        with found.client() as client:
            client.declare("stock", {"vol": "bigint"})
        yield found


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x",
        "http://127.0.0.1:8080/",
        "http://localhost/x",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://172.16.0.1/",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://[::1]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://[fec0::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "ftp://198.51.100.1/",
        "file:///etc/passwd",
        "http://user:word@198.51.100.1/",
        "http://",
        "http://[::1",
        "javascript:alert(1)",
    ],
)
def test_a_webhook_to_a_private_address_is_refused(strict: Running, url: str) -> None:
    with pytest.raises(BrokerError, match="this webhook is refused") as refused:
        hooked(strict, url)
    assert refused.value.status == 422


def test_a_name_is_checked_by_what_it_means_and_the_call_goes_to_that_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(address: str) -> None:
        found = [(2, 1, 6, "", (address, 80))]
        monkeypatch.setattr("headgate.broker.delivery.webhook.socket.getaddrinfo", lambda *a, **k: found)

    lookup("169.254.169.254")
    with pytest.raises(webhook.Blocked) as blocked:
        webhook.resolve("http://innocent.example/x", private=False)
    assert str(blocked.value) == "innocent.example has no address of the public internet", "it does not tell which"
    lookup("8.8.8.8")
    target = webhook.resolve("https://public.example:8443/x?y=1", private=False)
    assert (target.url, target.host, target.name) == (
        "https://8.8.8.8:8443/x?y=1",
        "public.example:8443",
        "public.example",
    )


@pytest.mark.parametrize("where", ["http://169.254.169.254/latest", "http://10.1.2.3/", "file:///etc/passwd"])
def test_a_redirect_to_a_private_address_is_refused(
    broker: Running, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    real = webhook.resolve

    def only_the_receiver(url: str, *, private: bool) -> webhook.Target:
        # The receiver of the test stands for a public host; everything else is checked as on a strict broker.
        return real(url, private=url == receiver.url)

    monkeypatch.setattr("headgate.broker.delivery.webhook.resolve", only_the_receiver)
    with receiving(307, location=where) as receiver, broker.http() as http:
        mine = hooked(broker, receiver.url, "vol > 900")
        publish(broker, 901)
        proof = {"Authorization": f"Bearer {mine.ticket}"}
        ask = f"/v1/subscriptions/{mine.id}/letters"
        (letter,) = until(lambda: http.get(ask, headers=proof).json()["letters"], "the dead letter")
        assert len(receiver.got) == 1
    assert "has no address of the public internet" in letter["reason"] or "must begin with http" in letter["reason"]
