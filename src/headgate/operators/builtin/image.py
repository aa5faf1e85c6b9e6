"""Image patterns on encoded pictures: people, faces, and things of a colour (DEBS 2007, section 2.1.1).

People are found by histograms of oriented gradients with the linear classifier that OpenCV ships (Dalal and Triggs,
2005), faces by its boosted cascade (Viola and Jones, 2001), things of a colour by segmentation in HSV and connected
components. These are classical detectors that come inside the wheel; they need OpenCV below version 5, which dropped
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.errors import EnvironmentProblem, UsageError
from headgate.language.catalogue import nearest
from headgate.operators.registry import VAR, Operator, operator

Picture = NDArray[np.uint8]
Range = tuple[tuple[int, int, int], tuple[int, int, int]]
"""The least and greatest hue (0 to 179), saturation and value (0 to 255)."""


def _cv2() -> Any:
    try:
        import cv2
    except ImportError:
        raise EnvironmentProblem("image operators need OpenCV", "install headgate[operators]") from None
    if not hasattr(cv2, "HOGDescriptor"):
        raise EnvironmentProblem(f"OpenCV {cv2.__version__} has no classical detectors", "install a version below 5")
    return cv2


def decode(data: bytes) -> Picture:
    """The pixels of a PNG, JPEG or other encoded picture, blue first."""
    picture = _cv2().imdecode(np.frombuffer(data, np.uint8), _cv2().IMREAD_COLOR)
    if picture is None:
        raise UsageError(f"{len(data)} bytes are not a picture that OpenCV can read")
    made: Picture = picture
    return made


@lru_cache(maxsize=1)
def _people() -> Any:
    detector = _cv2().HOGDescriptor()
    detector.setSVMDetector(_cv2().HOGDescriptor.getDefaultPeopleDetector())
    return detector


@lru_cache(maxsize=1)
def _faces() -> Any:
    cascade = Path(_cv2().data.haarcascades) / "haarcascade_frontalface_default.xml"
    return _cv2().CascadeClassifier(str(cascade))


def count_people(picture: Picture, sureness: float = 0.3) -> int:
    """Upright people, at least as large as the detector's window of 64 by 128 pixels."""
    height, width = picture.shape[:2]
    if height < 128 or width < 64:
        return 0
    boxes, weights = _people().detectMultiScale(picture, winStride=(8, 8), padding=(8, 8), scale=1.05)
    return sum(float(w) >= sureness for w in np.ravel(weights)) if len(boxes) else 0


def count_faces(picture: Picture) -> int:
    grey = _cv2().equalizeHist(_cv2().cvtColor(picture, _cv2().COLOR_BGR2GRAY))
    return len(_faces().detectMultiScale(grey, scaleFactor=1.1, minNeighbors=5, minSize=(24, 24)))


def blobs(picture: Picture, colours: Iterable[Range], least: int = 12) -> list[tuple[int, int, int, int]]:
    """The boxes (left, top, width, height) of connected regions whose colour lies in a range, of so many pixels."""
    hsv = _cv2().cvtColor(picture, _cv2().COLOR_BGR2HSV)
    mask = np.zeros(hsv.shape[:2], np.uint8)
    for low, high in colours:
        mask |= _cv2().inRange(hsv, np.array(low), np.array(high))
    count, _, stats, _ = _cv2().connectedComponentsWithStats(mask, connectivity=8)
    return [
        (int(stats[i, 0]), int(stats[i, 1]), int(stats[i, 2]), int(stats[i, 3]))
        for i in range(1, count)
        if stats[i, 4] >= least
    ]


def image_operators(
    attribute: str = "image", things: Mapping[str, Iterable[Range]] | None = None, least: int = 12
) -> list[Operator]:
    """`people_count(?n)`, `face_count(?n)`, and `thing_count(name, ?n)` for things known by their colour."""
    known = {name: tuple(ranges) for name, ranges in (things or {}).items()}

    def counted(asked: Any, found: int) -> bool | list[tuple[int]]:
        return [(found,)] if asked is VAR else bool(asked == found)

    @operator(cost=60.0, needs=[attribute], pure=True)
    def people_count(event: Any, n: Any) -> bool | list[tuple[int]]:
        """The number of upright people in the picture."""
        return counted(n, count_people(decode(event[attribute])))

    @operator(cost=30.0, needs=[attribute], pure=True)
    def face_count(event: Any, n: Any) -> bool | list[tuple[int]]:
        """The number of faces that look at the camera."""
        return counted(n, count_faces(decode(event[attribute])))

    @operator(cost=2.0, needs=[attribute], pure=True, variables=["n"])
    def thing_count(event: Any, name: str, n: Any) -> bool | list[tuple[int]]:
        """The number of things of a kind, told by their colour."""
        if name not in known:
            raise UsageError(f"no colour is given for {name}", nearest(name, known, "name its colour in things="))
        return counted(n, len(blobs(decode(event[attribute]), known[name], least)))

    return [people_count, face_count, thing_count]
