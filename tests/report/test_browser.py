"""The page in a real browser: headless Chromium, opened from a file, at the width of a desk and of a phone."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from distreduce import SDR
from distreduce.report import HeldOut, HeldOutClasses, write_report

pytestmark = pytest.mark.browser

HOSTILE = "</script><b onmouseover=alert(1)>\"'& ü"
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    browser, bridge = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not bridge:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(bridge))
    driver.get("about:blank")  # the page of a new tab goes on loading parts of itself
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, X, labels, lengths, classes, numbers, unsupervised):
    """A page with images, one with numbers and dates, one with hostile text, and one without targets."""
    folder = tmp_path_factory.mktemp("pages")
    images, digits = load_digits(return_X_y=True)
    images, digits = images[:300], digits[:300]
    model = SDR(n_prototypes=20, random_state=0, max_iter=2, tol=1.0).fit(images, digits)
    y = np.arange(10)
    named = pd.Series(digits, name="digit")
    held_out = HeldOutClasses(y, np.eye(10), y)
    write_report(folder / "digits.html", model, images, named, image_shape=(8, 8), held_out=held_out)
    table = pd.DataFrame(X, columns=["sepal", "width", "petal", "petal width"])
    table["day"] = pd.date_range("2024-01-01", periods=150)
    table["species"] = labels
    y = np.linspace(0, 1, 30)
    guess = HeldOut(y, y + 0.1, np.full(30, 0.2))
    write_report(folder / "numbers.html", numbers, X, lengths, table=table, held_out={"a": guess, "b": guess})
    hostile = pd.DataFrame({HOSTILE: [HOSTILE, "b", None] * 50})
    write_report(folder / "hostile.html", classes, X, labels.rename(HOSTILE), table=hostile, title=HOSTILE)
    write_report(folder / "plain.html", unsupervised, X)
    return folder


class Page:
    """A page as a reader meets it."""

    def __init__(self, driver):
        self.driver = driver

    def run(self, script):
        return self.driver.execute_script(script)

    def visit(self, path, width="desk", theme="light"):
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", size | {"deviceScaleFactor": 1, "mobile": False}
        )
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for log in ("browser", "performance"):
            self.driver.get_log(log)  # what came before is another page's
        self.driver.get(path.as_uri())
        self.run("document.getElementById('map').scrollIntoView({block: 'center'})")
        self.wait()
        return self

    def wait(self):
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 60))")

    def point_at(self, k, click=False):
        """Move the pointer to prototype `k` of the page, and click if asked."""
        self.point(*self.place(k), click)

    def point(self, x, y, click=False):
        from selenium.webdriver.common.action_chains import ActionChains

        chain = ActionChains(self.driver, duration=0)
        chain.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        if click:
            chain.w3c_actions.pointer_action.click()
        chain.perform()
        self.wait()

    def place(self, k):
        return self.run(
            f"const b = byId('map').getBoundingClientRect(), p = placeOf({k}); return [b.left + p[0], b.top + p[1]]"
        )

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()
        self.wait()

    def text(self, selector):
        return self.run(f"const e = document.querySelector({selector!r}); return e.hidden ? '' : e.innerText")

    def number(self, k):
        return self.run(f"return data.prototypes.number[{k}]")

    def top(self):
        """The place on the page of the prototype that lies above all others: the lightest."""
        return self.run("return nPrototypes - 1")


@pytest.fixture
def page(driver):
    return Page(driver)


@pytest.mark.parametrize("name", ["digits", "numbers", "hostile", "plain"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_opens_without_a_complaint_and_without_the_network(page, pages, name, width, theme):
    page.visit(pages / f"{name}.html", width, theme)
    page.point_at(page.top(), click=True)
    complaints = page.driver.get_log("browser")
    events = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert complaints == [] and asked == [(pages / f"{name}.html").as_uri()]


@pytest.mark.parametrize("name", ["digits", "numbers", "hostile", "plain"])
def test_nothing_is_wider_than_a_phone(page, pages, name):
    page.visit(pages / f"{name}.html", "phone")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_hover_on_a_prototype_shows_the_essentials(page, pages):
    page.visit(pages / "digits.html")
    page.point_at(page.top())
    assert all(word in page.text("#tip") for word in (f"Prototype {page.number(page.top())}", "weight: ", "samples: "))


def test_hover_shows_the_image_of_the_medoid(page, pages):
    page.visit(pages / "digits.html")
    page.point_at(page.top())
    assert page.run("return document.querySelector('#tip canvas').width") == 8


def test_hover_on_a_sample_shows_its_row_and_target(page, pages):
    page.visit(pages / "numbers.html")
    place = page.run(
        """const f = frame(), b = byId("map").getBoundingClientRect();
        for (let i = 0; i < nSamples; i++) {
          const x = f.ax * places.x[i] + f.bx, y = f.ay * places.y[i] + f.by;
          const found = under(Math.round(x + b.left) - b.left, Math.round(y + b.top) - b.top, 6);
          if (found.sample >= 0) return [x + b.left, y + b.top, rows[found.sample]];
        }"""
    )
    page.point(*place[:2])
    assert page.text("#tip").startswith(f"Sample in row {place[2]}\nlength: ")


def test_the_hint_goes_with_the_pointer(page, pages):
    page.visit(pages / "digits.html")
    page.point_at(page.top())
    page.point(3, 3)
    assert page.text("#tip") == ""


@pytest.mark.parametrize("width", WIDTHS)
def test_click_opens_the_panel(page, pages, width):
    page.visit(pages / "digits.html", width)
    page.point_at(page.top(), click=True)
    assert page.text("#panel").startswith(f"Prototype {page.number(page.top())}\n")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_selected_disc_stays_in_sight(page, pages, width):
    page.visit(pages / "numbers.html", width)
    page.run("openFrom(null, 0)")
    page.wait()
    x, y = page.place(0)
    assert page.run(f"return byId('map').contains(document.elementFromPoint({x}, {y}))")


def test_the_panel_shows_images_of_medoid_and_neighbours(page, pages):
    page.visit(pages / "digits.html").point_at(0, click=True)
    shown = page.run("return document.querySelectorAll('#panel .images canvas').length")
    assert shown == page.run("return data.details.nearest[state.selected].length")


def test_images_have_the_pixels_of_the_sample(page, pages):
    page.visit(pages / "digits.html")
    row, grey = page.run(
        """open(0); const c = document.querySelector("#panel .images canvas");
        return [data.details.rows[data.details.nearest[0][0]],
                [...c.getContext("2d").getImageData(0, 0, 8, 8).data].filter((_, i) => i % 4 === 0)]"""
    )
    np.testing.assert_allclose(grey, load_digits().data[row] / 16 * 255, atol=0.51)


def test_the_panel_shows_the_row_of_the_medoid(page, pages, numbers, X):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    medoid = numbers.prototype_medoids_[page.number(0)]
    cells = page.run(
        """const lines = [...document.querySelectorAll("#panel tbody tr")];
        return lines.map((line) => [line.cells[0].innerText, line.cells[1].innerText])"""
    )
    assert ["petal", f"{X[medoid, 2]:g}"] in cells


def test_the_panel_says_mean_and_spread(page, pages, numbers, lengths):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    members = lengths[numbers.labels_ == page.number(0)]
    assert f"{members.mean():.4g} ± {members.std(ddof=0):.4g}" in page.text("#panel .essentials")


def test_selected_is_the_only_prototype_at_full_strength(page, pages):
    page.visit(pages / "numbers.html")
    page.run("open(0)")
    page.wait()
    strength = page.run(
        """const c = layers.prototypes.getContext("2d"), f = frame();
        return [0, nPrototypes - 1].map((k) => c.getImageData(...placeOf(k, f), 1, 1).data[3])"""
    )
    assert strength[0] > 230 > 160 > strength[1]


def test_escape_closes(page, pages):
    from selenium.webdriver.common.keys import Keys

    page.visit(pages / "digits.html").point_at(page.top(), click=True)
    page.press(Keys.ESCAPE)
    assert page.text("#panel").startswith("Nothing is selected")


def test_the_button_closes(page, pages):
    page.visit(pages / "digits.html", "phone").point_at(page.top(), click=True)
    page.driver.find_element("id", "close").click()
    assert page.run("return state.selected") == -1


def test_by_keyboard_alone(page, pages):
    from selenium.webdriver.common.keys import Keys

    page.visit(pages / "digits.html")
    page.run("document.getElementById('zoom-all').focus({focusVisible: true})")
    page.press(Keys.TAB)
    first = page.run("return state.focused")
    page.press(Keys.ARROW_LEFT)
    page.press(Keys.ARROW_UP)
    second = page.run("return state.focused")
    announced = page.text("#live")
    page.press(Keys.ENTER)
    opened = page.run("return [state.selected, document.activeElement.id]")
    page.press(Keys.ESCAPE)
    closed = page.run("return [state.selected, document.activeElement.id]")
    assert (first, second != first, opened, closed) == (0, True, [second, "panel"], [-1, "map"])
    assert announced.startswith(f"Prototype {page.number(second)}: weight")


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


@pytest.mark.parametrize(("width", "theme"), [("desk", "light"), ("phone", "dark")])
def test_the_colour_switch_recolours_samples_and_legend(page, pages, width, theme):
    from selenium.webdriver.support.select import Select

    page.visit(pages / "numbers.html", width, theme)
    before = page.run("return [...colours.samples]")
    Select(page.driver.find_element("id", "colour-by")).select_by_visible_text("species")
    page.wait()
    assert page.text("#legend") == "species\nsetosa\nversicolor\nvirginica"
    assert page.run("return [...colours.samples]") != before


def test_samples_have_the_colours_of_the_plots(page, pages, classes, X, labels):
    from distreduce.colours import target_colours

    page.visit(pages / "hostile.html")
    order, drawn = page.run("return [[...rows], [...colours.samples]]")
    expected = target_colours(classes, labels, 0).samples[order, :3] * 255
    np.testing.assert_allclose(np.reshape(drawn, (-1, 3)), expected, atol=1)


def test_dates_are_dates_in_the_legend(page, pages):
    page.visit(pages / "numbers.html")
    page.run("const s = byId('colour-by'); s.value = [...s.options].find((o) => o.text === 'day').value;"
             "s.dispatchEvent(new Event('change'))")  # fmt: skip
    assert page.text("#legend") == "day\n2024-01-01\n2024-05-29"


def test_a_class_of_the_legend_can_be_picked_out(page, pages):
    page.visit(pages / "hostile.html")
    page.driver.find_element("css selector", "#legend button").click()
    assert page.run("return [state.highlighted, document.querySelector('#legend button').ariaPressed]") == [0, "true"]


def test_hostile_text_is_shown_as_it_is(page, pages):
    page.visit(pages / "hostile.html")
    page.run("open(0)")
    title, rows = (
        page.text("h1"),
        page.run("return [...document.querySelectorAll('#panel tbody th')].map((t) => t.innerText)"),
    )
    assert title == HOSTILE and HOSTILE in rows and page.run("return document.querySelector('b[onmouseover]') === null")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_map_follows_the_theme(page, pages, theme):
    page.visit(pages / "digits.html", theme=theme)
    corner = page.run("return [...layers.samples.getContext('2d').getImageData(1, 1, 1, 1).data]")
    assert (sum(corner[:3]) > 384) == (theme == "light")


def test_heat_map_click_opens_its_column(page, pages):
    page.visit(pages / "digits.html")
    box = page.run(
        """const c = document.querySelector("canvas.heat"); c.scrollIntoView({ block: "center" });
        const b = c.getBoundingClientRect(), l = heatLayout(c);
        return [b.left + l.left + 2.5 * l.step, b.top + 5, l.each.order[2]]"""
    )
    page.point(*box[:2], click=True)
    assert page.run("return state.selected") == box[2]


def test_zoom_keeps_what_is_under_the_pointer(page, pages):
    page.visit(pages / "digits.html")
    before, after = page.run("const a = placeOf(3); zoomBy(4, ...a); return [a, placeOf(3)]")
    np.testing.assert_allclose(after, before, atol=0.6)


@pytest.mark.parametrize("width", WIDTHS)
def test_text_is_large_enough_to_read(page, pages, width):
    page.visit(pages / "numbers.html", width)
    smallest = page.run(
        """open(0);
        const isText = (e) => !e.childElementCount && e.textContent.trim() && !e.closest("svg");
        const shown = (e) => isText(e) && e.getClientRects().length;
        const sizes = [...document.body.querySelectorAll("*")].filter(shown).map((e) => getComputedStyle(e).fontSize);
        return Math.min(...sizes.map(parseFloat))"""
    )
    assert smallest >= 12


def test_fifty_thousand_samples_are_drawn_from_a_small_file(page, tmp_path, classes, X, labels):
    import copy

    big, times = copy.deepcopy(classes), 334
    big.embedding_ = (
        np.tile(classes.embedding_, (times, 1)) + np.random.default_rng(0).normal(size=(150 * times, 2)) / 9
    )
    big.labels_ = np.tile(classes.labels_, times)
    big.coupling_ = classes.coupling_[np.tile(np.arange(150), times)]
    path = write_report(tmp_path / "big.html", big, np.tile(X, (times, 1)), np.tile(labels, times))
    page.visit(path)
    page.run("drawSamples(); drawPrototypes(); return true")
    assert path.stat().st_size < 3e6


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


UNDER = "const f = frame(); return [({x} - f.bx) / f.sx, (f.by - {y}) / f.sy]"


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


@pytest.fixture(scope="module")
def many(tmp_path_factory, X, unsupervised):
    """A page of 24 classes."""
    y = pd.Series([f"c{k:02}" for k in np.arange(150) % 24], name="class")
    return write_report(tmp_path_factory.mktemp("many") / "many.html", unsupervised, X, y)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_of_24_marks_of_the_legend_look_alike(page, many, theme):
    page.visit(many, theme=theme)
    marks = page.run("return [...document.querySelectorAll('#legend .swatch-mark')].map((c) => c.toDataURL())")
    assert len(set(marks)) == len(marks) == 24


def test_shapes_on_the_map_cover_the_area_of_a_disc(page, many):
    page.visit(many)
    areas = page.run("return data.shapes.map((_, s) => stamp(20, s).reduce((sum, [, , share]) => sum + share, 0))")
    np.testing.assert_allclose(areas, np.pi * 20**2, rtol=0.02)


def test_a_prototype_is_drawn_in_the_shape_of_its_class(page, many):
    page.visit(many)
    filled = page.run(
        """const c = layers.prototypes.getContext("2d"), colour = "rgb(0,0,0)", r = 20;
        return [1, 2].map((shape) => {
          c.clearRect(0, 0, view.width, view.height);
          mark(c, [100, 100], r, shape, colour, colour);
          return [[-15, -15], [0, -25], [0, 0]].map(([x, y]) => c.getImageData(100 + x, 100 + y, 1, 1).data[3] > 0);
        })"""
    )
    assert filled == [[True, False, True], [False, True, True]]  # a square has corners, a triangle a top


def test_print_is_light(page, pages):
    page.visit(pages / "digits.html", theme="dark")
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.wait()
    corner = page.run("return [...layers.samples.getContext('2d').getImageData(1, 1, 1, 1).data]")
    page.run("dispatchEvent(new Event('afterprint'))")
    assert corner == [255, 255, 255, 255]
