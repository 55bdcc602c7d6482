"""A browser, steered by Selenium, and the pages that it opens from files."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from browser_page import HOSTILE, Page
from distreduce import SDR
from distreduce.report import HeldOut, HeldOutClasses, write_report

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
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


@pytest.fixture
def page(driver):
    return Page(driver)
