"""The page of a report as a reader meets it, in headless Chromium."""

from __future__ import annotations

HOSTILE = "</script><b onmouseover=alert(1)>\"'& ü"
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}


class Page:
    """A page in a browser that a `driver` of Selenium steers."""

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
