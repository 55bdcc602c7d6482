"""Fingers on the map."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.browser

UNDER = "const f = frame(); return [({x} - f.bx) / f.sx, (f.by - {y}) / f.sy]"


@pytest.fixture
def touch(page):
    """``touch("touchMove", (x, y), …)``: fingers at these places of the map, as a screen reports them."""
    page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})

    def send(kind, *places):
        left, top = page.run("const b = byId('map').getBoundingClientRect(); return [b.left, b.top]")
        points = [{"x": left + x, "y": top + y, "id": finger} for finger, (x, y) in enumerate(places)]
        page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.wait()

    yield send
    page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def pinched(touch):
    """Two fingers 100 pixels apart, then 300, around a middle that moves from (180, 150) to (190, 170)."""
    touch("touchStart", (130, 150))
    touch("touchStart", (130, 150), (230, 150))
    for far in (80, 110, 150):
        touch("touchMove", (190 - far, 170), (190 + far, 170))
    touch("touchEnd")


def test_two_fingers_zoom_by_how_far_they_part(page, pages, touch):
    page.visit(pages / "digits.html", "phone")
    pinched(touch)
    assert page.run("return state.zoom") == pytest.approx(3, rel=0.02)


def test_what_lies_between_two_fingers_stays_between_them(page, pages, touch):
    page.visit(pages / "digits.html", "phone")
    before = page.run(UNDER.format(x=180, y=150))
    pinched(touch)
    np.testing.assert_allclose(page.run(UNDER.format(x=190, y=170)), before, atol=0.01)


def test_two_fingers_that_close_zoom_out_again(page, pages, touch):
    page.visit(pages / "digits.html", "phone")
    page.run("zoomBy(4)")
    touch("touchStart", (20, 150), (310, 150))
    touch("touchMove", (150, 150), (180, 150))
    touch("touchEnd")
    assert page.run("return [state.zoom, state.x, state.y]") == [1, 0.5, 0.5]


def test_a_pinch_opens_nothing(page, pages, touch):
    page.visit(pages / "digits.html", "phone")
    pinched(touch)
    assert page.run("return state.selected") == -1


def test_the_finger_that_stays_drags_on_without_a_jump(page, pages):
    page.visit(pages / "digits.html", "phone")
    script = """zoomBy(4);
        const map = byId("map"), box = map.getBoundingClientRect();
        for (const [kind, pointerId, x, y] of %s)
          map.dispatchEvent(new PointerEvent(kind, { pointerId, pointerType: "touch", bubbles: true,
            buttons: Number(kind !== "pointerup"), clientX: box.left + x, clientY: box.top + y }));"""
    events = [
        ["pointerdown", 7, 100, 150],
        ["pointerdown", 8, 200, 150],
        ["pointermove", 8, 220, 180],
        ["pointerup", 8, 220, 180],
    ]
    before = page.run(script % events + UNDER.format(x=100, y=150))
    after = page.run(script.replace("zoomBy(4);", "") % [["pointermove", 7, 130, 160]] + UNDER.format(x=130, y=160))
    np.testing.assert_allclose(after, before, atol=1e-9)


def test_a_tap_after_a_pinch_opens(page, pages, touch):
    page.visit(pages / "digits.html", "phone")
    pinched(touch)
    page.run("zoomBy(0)")
    page.wait()
    left, top = page.run("const b = byId('map').getBoundingClientRect(); return [b.left, b.top]")
    x, y = page.place(page.top())
    touch("touchStart", (x - left, y - top))
    touch("touchEnd")
    assert page.run("return state.selected") == page.top()
