"""Take screenshots for the documentation: ``python docs/make_page_pictures.py``, with selenium and chromium."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from distreduce import SDR
from distreduce.report import write_report

FOLDER = Path(__file__).parent / "img"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--hide-scrollbars",
)  # fmt: skip
WHOLE, DESK, PHONE = (1280, 1170), (1280, 900), (390, 844)


def digits(path: Path) -> Path:
    """Write the page of a fit to three quarters of the digits."""
    X, _, y, _ = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = SDR(n_prototypes=60, random_state=0).fit(X, y)
    return write_report(path, model, X, pd.Series(y, name="digit"), image_shape=(8, 8), title="Digits")


def diabetes(path: Path) -> Path:
    """Write the page of a fit to three quarters of the diabetes data."""
    X, _, y, _ = train_test_split(*load_diabetes(return_X_y=True, as_frame=True), random_state=0)
    return write_report(path, SDR(n_prototypes=30, random_state=0).fit(X, y), X, y)


def browser(profile: str) -> Any:
    """Start headless Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def photograph(driver: Any, page: Path, name: str, size: tuple[int, int], theme: str, script: str) -> None:
    """Save the page in this size and theme, after a script that selects a prototype and scrolls."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wanted = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
    features = [{"name": feature, "value": value} for feature, value in wanted.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.as_uri())
    driver.execute_script(script)
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 200))")
    driver.save_screenshot(str(FOLDER / name))


def main() -> None:
    """Write both pages and save screenshots: light and dark, desktop and phone."""
    with TemporaryDirectory() as folder:
        scans, patients = digits(Path(folder) / "digits.html"), diabetes(Path(folder) / "diabetes.html")
        driver = browser(str(Path(folder) / "profile"))
        try:
            above = "byId('map').scrollIntoView({block: 'center'});"
            photograph(driver, scans, "report-digits.png", WHOLE, "light", "open(0)")  # from its first sentence on
            photograph(driver, scans, "report-phone.png", PHONE, "dark", "openFrom(null, 0)")
            photograph(driver, patients, "report-diabetes.png", DESK, "dark", above + "openFrom(null, 5)")
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
