"""Sign-in in a browser, under the content policy of the site: a provider, an app, a security key, guesses."""

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Installation, Site, Watch
from tests.mobility.signin.totp import code_of
from tests.openid_provider import Provider, openid_provider

pytestmark = pytest.mark.e2e
FIRST_PORT, PORTS = 8140, 20  # the server takes the next one where one is taken


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    answers = [f"http://localhost:{FIRST_PORT + number}/sign-in/provider/answer/" for number in range(PORTS)]
    with openid_provider(tmp_path_factory.mktemp("provider"), *answers) as running:
        yield running


@pytest.fixture(scope="module")
def door(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A served installation with that provider, where administrators need a second factor."""
    variables = {"MOBILITY_OIDC_NAME": "Staff login", "MOBILITY_SECOND_FACTOR": "required"}
    bare = Installation(tmp_path_factory.mktemp("door"), extra=provider.variables | variables)
    accounts = {
        role: bare.value("create_account", role, "--role", role)["password"]
        for role in ("analyst", "administrator")
    }
    server = bare.start("run", "--port", str(FIRST_PORT))
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        pytest.fail(f"the server did not start\n{server.communicate()[1]}")
    # By name: a browser has security keys for names only.
    address = json.loads(line)["address"].rstrip("/").replace("127.0.0.1", "localhost")
    try:
        yield Site(data_dir=bare.data_dir, extra=bare.extra, address=address, accounts=accounts)
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


@pytest.fixture
def visitor(door: Site, provider: Provider, browser: Browser) -> Iterator[Callable[..., Page]]:
    """A page of nobody, watched; only the provider is another host that it may ask."""
    contexts, watches = [], []

    def new_page(address: str = door.address, **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        watches.append(Watch(host=urlsplit(address).netloc))
        watches[-1].on(page)
        page.goto(f"{address}/sign-in/")
        return page

    yield new_page
    for context in contexts:
        context.close()
    elsewhere = f"asked http://{urlsplit(provider.issuer).netloc}/"
    complaints = [text for watch in watches for text in watch.complaints]
    assert [text for text in complaints if not text.startswith(elsewhere)] == []


def enter(page: Page, door: Site, role: str) -> None:
    page.goto(f"{door.address}/sign-in/")
    page.fill("input[name=username]", role)
    page.fill("input[name=password]", door.accounts[role])
    page.press("input[name=password]", "Enter")


def confirm(page: Page, door: Site, role: str) -> None:
    """Type the password once more, where a page asks for it."""
    page.fill("input[name=password]", door.accounts[role])
    page.press("input[name=password]", "Enter")


def leave(page: Page) -> None:
    page.click("header button:has-text('Sign out')")
    page.wait_for_url("**/sign-in/")


def add_key_device(page: Page) -> None:
    """Plug a security key into the computer; it is touched at once."""
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "usb", "hasResidentKey": False, "hasUserVerification": False,
        "automaticPresenceSimulation": True,
    }  # fmt: skip
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_provider_lets_people_in_who_may_do_nothing_yet(visitor: Callable[..., Page], door: Site) -> None:
    page = visitor()
    page.click("button:has-text('Sign in with Staff login')")
    page.fill("input[name=username]", "ada")
    page.fill("input[name=password]", "ada")
    page.click("button:has-text('Log in')")
    page.click("button[name=allow]")
    page.wait_for_url(f"{door.address}/")
    expect(page.locator("main")).to_contain_text("this account has no role yet")
    page.click(".header__name")
    expect(page.locator("main")).to_contain_text("You sign in with Staff login, so there is no password here")


def test_cancelled_at_the_provider_is_said(visitor: Callable[..., Page], door: Site) -> None:
    page = visitor()
    page.click("button:has-text('Sign in with Staff login')")
    page.fill("input[name=username]", "anna")
    page.fill("input[name=password]", "anna")
    page.click("button:has-text('Log in')")
    page.click("button[name=cancel]")
    expect(page.locator("h1")).to_have_text("Not signed in")
    page.click("main a")
    expect(page.locator("h1")).to_have_text("Sign in")


def test_administrator_adds_an_app_and_then_a_key_and_signs_in_with_each(
    visitor: Callable[..., Page], door: Site
) -> None:
    page = visitor()
    add_key_device(page)
    enter(page, door, "administrator")
    page.wait_for_url("**/account/")  # nothing else opens before there is a second factor
    page.goto(f"{door.address}/administrator/")
    expect(page.locator("main")).to_contain_text("Your role needs a second factor")

    page.click("a:has-text('Set up an app')")
    confirm(page, door, "administrator")
    assert page.locator("img.qr").evaluate("image => image.naturalWidth") > 50
    page.click("summary")
    secret = page.locator("#secret").inner_text()
    page.fill("input[name=code]", code_of(secret))
    page.press("input[name=code]", "Enter")
    expect(page.locator("h1")).to_have_text("Recovery codes")
    codes = page.locator(".codes li").all_inner_texts()
    page.click("a:has-text('Done')")

    page.click("a:has-text('Add a security key')")
    page.fill("input[name=name]", "Key on my ring")
    page.click("[data-key-button]")
    page.wait_for_url("**/account/")
    expect(page.locator("main")).to_contain_text("Key on my ring")

    page.click("a:has-text('Add a security key')")
    page.click("[data-key-button]")  # the browser refuses: the key is here already
    expect(page.get_by_role("alert")).to_contain_text("this browser refused it")

    leave(page)
    enter(page, door, "administrator")
    page.wait_for_url("**/sign-in/second-factor/")
    page.click("[data-key-button]")
    page.wait_for_url(f"{door.address}/")

    leave(page)
    enter(page, door, "administrator")
    page.fill("input[name=code]", codes[0])
    page.press("input[name=code]", "Enter")
    page.wait_for_url(f"{door.address}/")


def test_address_without_a_name_says_why_keys_cannot_work(visitor: Callable[..., Page], door: Site) -> None:
    by_number = door.address.replace("localhost", "127.0.0.1")
    page = visitor(by_number)
    page.fill("input[name=username]", "analyst")
    page.fill("input[name=password]", door.accounts["analyst"])
    page.press("input[name=password]", "Enter")
    page.wait_for_url(f"{by_number}/")
    page.goto(f"{by_number}/account/keys/add/")
    confirm(page, door, "analyst")
    expect(page.locator("[data-key-unsupported]")).to_be_visible()
    expect(page.locator("[data-key-button]")).to_be_disabled()


def test_guesses_are_stopped_in_all_processes_of_the_server(visitor: Callable[..., Page], door: Site) -> None:
    page = visitor()
    for _ in range(11):
        page.fill("input[name=username]", "somebody")
        page.fill("input[name=password]", "a guess")
        page.press("input[name=password]", "Enter")
        page.wait_for_load_state()
    expect(page.get_by_role("alert")).to_contain_text("Too many attempts have failed. Wait")
