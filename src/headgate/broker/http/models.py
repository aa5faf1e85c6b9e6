"""The shapes of requests and answers: what the OpenAPI document is made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Mode = Literal["null", "strict", "default", "total"]
Seconds = Annotated[float, Field(gt=0, le=366 * 86_400, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=0, lt=1 << 62)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Delivery(Strict):
    """How notifications come: `stream` for server-sent events, WebSocket or pull; or pushed to a webhook or a topic."""

    kind: Literal["stream", "pull", "webhook", "kafka"] = "stream"
    url: Annotated[str, StringConstraints(max_length=2000)] | None = None
    topic: Annotated[str, StringConstraints(max_length=250)] | None = None
    key: Annotated[str, StringConstraints(max_length=500)] | None = Field(
        None, description="With `interval`: at most one notification for each value at this path"
    )
    interval: Seconds | None = None
    cap: Annotated[int, Field(gt=0, lt=1 << 31)] | None = Field(None, description="Notifications in a minute")


class Draft(Strict):
    text: Text
    stream: Name | None = None
    missing: Mode = "null"


class NewSubscription(Draft):
    validity: Seconds | None = Field(None, description="Seconds; a day if left out")
    name: Name | None = Field(None, description="For people: yours to choose, need not be unique")
    delivery: Delivery = Field(default_factory=lambda: Delivery.model_validate({}))


class NewSubscriptions(Strict):
    subscriptions: Annotated[list[NewSubscription], Field(min_length=1, max_length=1000)]


class Subscription(BaseModel):
    id: str
    name: str | None
    text: str | None
    stream: str | None
    missing: str | None
    state: str
    created: float
    expires: float
    delivery: dict[str, Any]
    acknowledged: int
    waiting: str | None = Field(None, description="Why the last attempt to deliver failed, or why it does not match")


class Created(Subscription):
    ticket: str = Field(description="Told once: needed to renew, cancel or read")
    signing_key: str | None = Field(None, description="What webhooks are signed with")


class CreatedAll(BaseModel):
    subscriptions: list[Created]


class Page(BaseModel):
    subscriptions: list[Subscription]
    next: str | None = Field(None, description="Ask for what comes `after` this")


class Renewal(Strict):
    validity: Seconds | None = None


class Renewed(BaseModel):
    expires: float


class Acknowledgement(Strict):
    until: Number = Field(description="The `seq` of the last notification that is done with")


class Notifications(BaseModel):
    notifications: list[dict[str, Any]]
    next: int = Field(description="Ask for what comes after this number")


class LetterOut(BaseModel):
    seq: int
    notification: int
    id: str
    reason: str
    attempts: int
    at: float


class Letters(BaseModel):
    letters: list[LetterOut]


class Redelivered(BaseModel):
    delivered: int
    failures: list[str]


class NewStream(Strict):
    name: Name
    attributes: Annotated[dict[Name, Name], Field(min_length=1, max_length=2000)]
    time: Name | None = None


class StreamOut(BaseModel):
    name: str
    attributes: dict[str, str | None]
    declared: bool
    time: list[str]


class Streams(BaseModel):
    streams: list[StreamOut]


class Unfit(BaseModel):
    event: int
    code: str
    reason: str


class PublishedOut(BaseModel):
    accepted: int
    first: int
    last: int
    repeated: bool = False
    unfit: int = Field(default=0, description="Events that do not fit the declaration of their stream")
    problems: list[Unfit] = Field(default_factory=list, description="Why, for the first of them")


class ErrorOut(BaseModel):
    seq: int
    stream: str | None
    event: str | None = Field(description="Its number in the log")
    code: str
    reason: str
    text: str | None = Field(description="The event, or the beginning of a long one")
    subscriptions: list[str] | None = Field(
        description="One's own that could not be decided; null if nobody could use the event"
    )
    concerned: int = Field(description="How many could not be decided, with those of others")
    at: float


class Errors(BaseModel):
    errors: list[ErrorOut]
    next: int = Field(description="Ask for what comes after this number")


class Problem(BaseModel):
    code: str
    message: str
    hint: str
    line: int
    column: int
    length: int
    caret: str


class Checked(BaseModel):
    fine: bool
    problems: list[Problem]


class Trial(Strict):
    stream: Name | None = None
    event: dict[str, Any]
    drafts: Annotated[list[Draft], Field(max_length=20)] = Field(default_factory=list)


class Verdict(BaseModel):
    id: str
    name: str | None
    text: str
    matched: bool
    why: str
    blocking: list[str]


class Verdicts(BaseModel):
    verdicts: list[Verdict]


class ProblemDetails(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
