"""The page without a pointer."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def test_by_keyboard_alone(page, pages):
    from selenium.webdriver.common.keys import Keys

    page.visit(pages / "digits.html")
    page.run("document.getElementById('save-png').focus({focusVisible: true})")
    page.press(Keys.TAB)
    first = page.run("return state.focused")
    for arrow in (Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_RIGHT):
        page.press(arrow)
        second = page.run("return state.focused")
        if second != first:  # the first may lie at an edge
            break
    announced = page.text("#live")
    page.press(Keys.ENTER)
    opened = page.run("return [state.selected, document.activeElement.id]")
    page.press(Keys.ESCAPE)
    closed = page.run("return [state.selected, document.activeElement.id]")
    assert (first, second != first, opened, closed) == (0, True, [second, "panel"], [-1, "map"])
    assert announced.startswith(f"Prototype {page.number(second)}: samples nearby")


def test_arrows_reach_every_prototype(page, pages):
    page.visit(pages / "numbers.html")
    reached = page.run(
        """const seen = new Set([0]), todo = [0];
        while (todo.length) {
          const k = todo.pop();
          for (const d of Object.values(ARROWS)) {
            const j = neighbour(k, ...d);
            if (!seen.has(j)) { seen.add(j); todo.push(j); }
          }
        }
        return seen.size === nPrototypes"""
    )
    assert reached


def test_the_table_opens_prototypes_too(page, pages):
    from selenium.webdriver.common.keys import Keys

    page.visit(pages / "digits.html")
    page.run("document.querySelector('details').open = true; document.querySelectorAll('button.opens')[4].focus()")
    page.press(Keys.ENTER)
    assert page.run("return state.selected") == 4
