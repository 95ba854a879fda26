"""Sign-in in a browser, under the content policy of the site: a provider, an app, a security key, guesses."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from scripts import services
from tests.e2e.conftest import Installation, Site, Watch, fill_in
from tests.e2e.several import put_databases
from tests.mobility.signin.totp import code_of
from tests.openid_provider import openid_provider

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def ports():
    """Ports for the site: the server takes the next one where one is taken."""
    first = services.free_port()
    return range(first, first + 20)


@pytest.fixture(scope="module")
def provider(ports, tmp_path_factory):
    answers = [f"http://localhost:{port}/sign-in/provider/answer/" for port in ports]
    with openid_provider(tmp_path_factory.mktemp("provider"), *answers) as running:
        yield running


@pytest.fixture(scope="module")
def door(ports, provider, migrated, tmp_path_factory):
    variables = {"MOBILITY_OIDC_NAME": "Staff login", "MOBILITY_SECOND_FACTOR": "required"}
    folder = put_databases(migrated, tmp_path_factory.mktemp("door"))
    bare = Installation(folder, extra=provider.variables | variables)
    accounts = bare.create_accounts("analyst", "administrator")
    with bare.served(port=ports.start) as address:
        # By name: a browser has security keys for names only.
        named = address.replace("127.0.0.1", "localhost")
        yield Site(data_dir=bare.data_dir, extra=bare.extra, address=named, accounts=accounts)


@pytest.fixture
def visitor(door, provider, browser):
    """A page of no one, watched; only the provider is another host that it may ask."""
    contexts, watches = [], []

    def new_page(address=door.address, **options):
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
    elsewhere = f": asked http://{urlsplit(provider.issuer).netloc}/"
    assert [text for watch in watches for text in watch.complaints if elsewhere not in text] == []


def enter(page, door, role):
    page.goto(f"{door.address}/sign-in/")
    fill_in(page, role, door.accounts[role])


def confirm(page, door, role):
    page.fill("input[name=password]", door.accounts[role])
    page.press("input[name=password]", "Enter")


def leave(page):
    page.click("header button:has-text('Sign out')")
    page.wait_for_url("**/sign-in/")


def add_key_device(page):
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "usb", "automaticPresenceSimulation": True}
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_provider_lets_people_in_who_may_do_nothing_yet(visitor, door):
    page = visitor()
    page.click("button:has-text('Sign in with Staff login')")
    page.fill("input[name=username]", "ada")
    page.fill("input[name=password]", "ada")
    page.click("button:has-text('Log in')")
    page.click("button[name=allow]")
    page.wait_for_url(f"{door.address}/")
    expect(page.locator("main")).to_contain_text("this account has no role yet")
    page.click(".header__name")
    expect(page.locator("main")).to_contain_text(
        "You sign in with Staff login, so you have no password on this site"
    )


def test_administrator_adds_an_app_and_then_a_key_and_signs_in_with_each(visitor, door):
    page = visitor()
    add_key_device(page)
    enter(page, door, "administrator")
    page.wait_for_url("**/account/")  # nothing else opens before there is a second factor
    page.goto(f"{door.address}/administrator/")
    expect(page.locator("main")).to_contain_text("Your role requires a second factor")

    page.click("a:has-text('Set up an app')")
    confirm(page, door, "administrator")
    assert page.locator("img.qr").evaluate("image => image.naturalWidth") > 50
    page.click("summary")
    page.fill("input[name=code]", code_of(page.locator("#secret").inner_text()))
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


def test_address_without_a_name_says_why_keys_cannot_work(visitor, door):
    by_number = door.address.replace("localhost", "127.0.0.1")
    page = visitor(by_number)
    fill_in(page, "analyst", door.accounts["analyst"])
    page.wait_for_url(f"{by_number}/")
    page.goto(f"{by_number}/account/keys/add/")
    confirm(page, door, "analyst")
    expect(page.locator("[data-key-unsupported]")).to_be_visible()
    expect(page.locator("[data-key-button]")).to_be_disabled()


def test_guesses_are_stopped_in_all_processes_of_the_server(visitor, door):
    page = visitor()
    for _ in range(11):
        fill_in(page, "somebody", "a guess")
        page.wait_for_load_state()
    expect(page.get_by_role("alert")).to_contain_text("Too many failed attempts")
