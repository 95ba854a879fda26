"""The main job as people do it: files come in whole, of another kind, or in pieces, and a report is read."""

import csv
import json
import re
import subprocess

import pytest
from playwright.sync_api import expect

from tests.demo_study import STUDY, STUDY_FILE
from tests.e2e.conftest import fill_in
from tests.e2e.lines import line_to
from tests.reference import read_extract, read_study

pytestmark = pytest.mark.e2e
HEADER = "ServedMSISDN;IMEI;recordOpeningTime;CellIdentifier;Sexe;Année de naissance;Code postal"
N_PEOPLE, N_ROWS = 40, 400
FRAME_BYTES = 4 << 20


@pytest.fixture(scope="module")
def later_days(site, extract):
    return site.values(*(("ingest", STUDY, str(path)) for path in extract[1:3]))


def test_upload_in_the_browser_ends_in_a_report(site, extract, later_days, sign_in):
    truth = read_extract(extract[:3], read_study(STUDY_FILE))["presence"]
    operator = sign_in("operator")
    operator.goto(f"{site.address}/operator/{STUDY}/")
    send(operator, extract[0])
    operator.wait_for_url("**/operator/batches/**")
    expect(operator.locator("main")).to_contain_text("Done", timeout=60_000)

    visitors = sum(map(bool, truth.values()))
    analyst = sign_in("analyst")
    analyst.goto(f"{site.address}/studies/{STUDY}/gender/?from=2017-05-31&to=2017-06-02")
    expect(analyst.locator("main")).to_contain_text(f"{visitors:,}")
    window = ("--from", "2017-05-31", "--to", "2017-06-02")
    (report,) = site.value("export_report", STUDY, "--indicator", "gender", *window)
    assert report["n_visitors"] == visitors


@pytest.fixture(scope="module")
def operators_file(tmp_path_factory):
    """CDRs as 3GPP names them: semicolons, Latin-1, days first, a year of birth and a postcode."""
    with (STUDY_FILE.parent / "cells.csv").open(encoding="utf-8") as file:
        cells = [row["cell_id"] for row in csv.DictReader(file)]
    rows = [HEADER]
    for i in range(N_ROWS):
        who = i % N_PEOPLE
        time = f"{1 + i % 4:02d}/06/2017 {8 + i % 12:02d}:15:00"
        person = "HF"[who % 2], str(1940 + who), ("25000", "75011", "")[who % 3]
        fields = f"336{who * 7919:08d}", f"35{who * 104_729:013d}", time, cells[i % len(cells)], *person
        rows.append(";".join(fields))
    path = tmp_path_factory.mktemp("operator") / "cdr.csv"
    path.write_bytes("\r\n".join([*rows, ""]).encode("latin-1"))
    return path


def test_a_profile_is_proposed_corrected_saved_and_a_file_checked_with_it(site, operators_file, sign_in):
    page = sign_in("operator")
    page.goto(f"{site.address}/operator/{STUDY}/")
    page.get_by_role("link", name="All profiles").click()
    page.get_by_role("link", name="New profile").click()
    page.wait_for_load_state()  # the script listens to the field from then on
    page.set_input_files("#profile-file", operators_file)
    # The first file of a server loads what reads it.
    expect(page.get_by_role("heading", name="Preview of the first rows")).to_be_visible(timeout=30_000)
    # Days 1 to 4 could as well be months, but then no row would be of the study.
    for label, value in (("Cell", "CellIdentifier"), ("Time format", "%d/%m/%Y %H:%M:%S")):
        expect(page.get_by_label(label, exact=True)).to_have_value(value)
    source = page.content()
    assert "••••" in source
    for line in operators_file.read_text("latin-1").splitlines()[1:]:
        assert not [identifier for identifier in line.split(";")[:2] if identifier in source]

    page.get_by_role("button", name="Save the profile").click()
    expect(page.locator("#profile-problems")).to_be_focused()

    expect(page.locator(".preview tbody")).to_contain_text("→ Thu 1 Jun 2017, 08:15")
    region = page.get_by_role("group", name="Region of residence")
    region.get_by_label(re.compile("^25 ")).select_option("Franche-Comté")
    expect(page.locator(".preview tbody")).to_contain_text("→ Franche-Comté")
    region.get_by_label("Any other value").select_option("no answer")
    expect(page.locator(".preview tbody")).to_contain_text("→ no answer")
    page.get_by_label("Name of the profile").fill("operator-x")
    page.get_by_role("button", name="Save the profile").click()
    page.wait_for_url("**/profiles/operator-x/")
    expect(page.locator("main")).to_contain_text("25 → Franche-Comté")

    saved = page.url
    page.get_by_role("link", name="Duplicate").click()
    page.wait_for_load_state()
    page.set_input_files("#profile-file", operators_file)
    expect(page.locator(".preview tbody")).to_contain_text("→ Franche-Comté")  # as chosen for the first one
    expect(page.get_by_label("Name of the profile")).to_have_value("operator-x-2")
    page.goto(saved)

    page.get_by_role("link", name="Check a file with this profile").click()
    expect(page.get_by_label(re.compile("^Profile"))).to_have_value("operator-x")
    expect(page.get_by_label("Check the file without publishing anything")).to_be_checked()
    expect(page.locator("#upload-send")).to_have_text("Check the file")
    page.set_input_files("#upload-file", operators_file)
    page.locator("#upload-send").click()
    page.wait_for_url("**/operator/batches/**")
    expect(page.locator("main")).to_contain_text("No data from the file was kept", timeout=60_000)
    expect(page.locator("main")).to_contain_text(f"of {N_ROWS}")
    expect(page.locator("main")).not_to_contain_text("Value outside")


def test_a_file_that_lacks_columns_is_noticed_and_goes_along_to_a_new_profile(site, sign_in, operators_file):
    page = sign_in("operator")
    page.goto(f"{site.address}/operator/{STUDY}/")
    page.get_by_label(re.compile("^Profile")).select_option("default")
    misfit = page.locator("#upload-misfit")
    header = ",".join(page.locator("#upload-columns").inner_text().split(", "))
    good = {"name": "good.csv", "mimeType": "text/csv", "buffer": f"{header}\n1,2\n".encode()}
    page.set_input_files("#upload-file", good)
    expect(misfit).to_be_hidden()
    lacking = good | {"name": "lacking.csv", "buffer": f"{header.replace('msisdn', 'caller')}\n".encode()}
    page.set_input_files("#upload-file", lacking)
    expect(misfit).to_have_text(re.compile("which the profile expects: msisdn. Choose another profile"))
    quoted = good | {"name": "quoted.csv", "buffer": b'"cell, id","caller"\n'}  # not taken apart
    page.set_input_files("#upload-file", quoted)
    expect(misfit).to_be_hidden()
    page.set_input_files("#upload-file", lacking)
    expect(misfit).to_be_visible()
    page.locator("#upload-profile option:checked").evaluate(
        "option => { option.dataset.columns = JSON.stringify(['caller', 'cell, id']); }"
    )
    page.get_by_label(re.compile("^Profile")).dispatch_event("change")
    expect(page.locator("#upload-columns")).to_have_text("caller, cell, id")
    expect(misfit).to_be_hidden()
    page.reload()
    page.get_by_label(re.compile("^Profile")).select_option("default")
    packed = good | {"name": "packed.csv.gz", "buffer": b"\x1f\x8b\x08\n"}
    page.set_input_files("#upload-file", packed)
    expect(misfit).to_be_hidden()
    page.set_input_files("#upload-file", operators_file)
    expect(misfit).to_be_visible()
    with page.context.expect_page() as opened:
        name = "Create a profile from this file (opens in a new tab)"
        page.get_by_role("link", name=name).click()
    expect(opened.value.locator(".preview tbody")).to_contain_text("→", timeout=30_000)
    assert page.url.endswith(f"/operator/{STUDY}/")
    opened.value.close()


def test_a_command_is_copied(site, sign_in):
    page = sign_in("operator")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site.address}/operator/{STUDY}/feeds/")
    page.get_by_role("button", name="Copy the command").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#feed-command").inner_text()


@pytest.fixture(scope="module")
def large(extract, tmp_path_factory):
    """A file of several frames: a day's rows, and the same ones again (they count as duplicates)."""
    header, rows = extract[0].read_bytes().split(b"\n", 1)
    file = tmp_path_factory.mktemp("large") / "large.csv"
    file.write_bytes(header + b"\n" + rows * (3 * FRAME_BYTES // len(rows) + 1))
    return file


@pytest.fixture(scope="module")
def expected(site, large):
    return counts(site.value("ingest", STUDY, str(large), "--validate-only"))


@pytest.fixture(scope="module")
def token(site):
    return str(site.value("create_feed_token", STUDY, "nightly", "--days", "1")["token"])


@pytest.fixture
def line(site):
    with line_to(int(site.address.rsplit(":", 1)[1])) as line:
        yield line


@pytest.fixture
def page(browser, site, line):
    """An operator's upload form, behind the line."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{line.address}/sign-in/")
        fill_in(page, "operator", site.accounts["operator"])
        page.wait_for_url(f"{line.address}/")
        page.goto(f"{line.address}/operator/{STUDY}/")
        page.get_by_label("Check the file without publishing anything").check()
        yield page


def cutting(cuts):
    """Let a connection continue until it has carried as much as the first of `cuts`, which is then over."""

    def lets(carried):
        if not cuts or carried <= cuts[0]:
            return True
        cuts.pop(0)
        return False

    return lets


def counts(summary):
    kept = ("rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "subscriber_days")
    return {name: summary[name] for name in kept}


def of_page(page, site):
    page.wait_for_url("**/operator/batches/**", timeout=60_000)
    batch = page.url.rstrip("/").split("/")[-1]
    expect(page.locator("#state-title")).to_have_text("Checked", timeout=60_000)
    code = (
        "import json; from mobility.models import Batch; from mobility.batches import outcomes; "
        f"print(json.dumps(outcomes.summary(Batch.objects.get(pk='{batch}'))))"
    )
    return counts(site.value("shell", "--no-imports", "-c", code))


def send(page, file):
    page.set_input_files("input[type=file]", file)
    page.locator("#upload-send").click()


def test_an_upload_that_is_cut_off_goes_on(site, large, expected, line, page):
    cuts = [FRAME_BYTES * 3 // 2] * 2
    line.lets_up = cutting(cuts)
    send(page, large)
    assert of_page(page, site) == expected
    assert cuts == []
    assert page.evaluate("localStorage.length") == 0


def cut_off_for_good(page, line, file):
    """Send until a frame has arrived, and let no other through; pages come through."""
    line.lets_up = cutting([FRAME_BYTES * 3 // 2, *[100_000] * 1000])
    send(page, file)
    expect(page.locator("#upload-note")).to_contain_text("Trying again", timeout=30_000)


def test_an_upload_goes_on_after_the_page_was_loaded_again(site, large, expected, line, page):
    cut_off_for_good(page, line, large)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#upload-note")).to_contain_text("The upload is paused")
    ((key, kept),) = page.evaluate("Object.entries(localStorage)")
    assert kept.isdigit()
    assert large.name not in key

    line.repair()
    page.on("dialog", lambda dialog: dialog.accept())  # leaving during an upload is asked about
    for _ in range(20):  # until the server has noticed
        page.goto(f"{line.address}/operator/{STUDY}/")
        if f"{large.name}: 4.2 of" in page.inner_text("main"):
            break
        page.wait_for_timeout(500)
    page.set_input_files("input[type=file]", large)
    expect(page.locator("#upload-note")).to_contain_text("4.2 of ")
    page.locator("#upload-send").click()
    assert of_page(page, site) == expected


def test_a_cancelled_upload_leaves_nothing(site, large, line, page):
    cut_off_for_good(page, line, large)
    line.repair()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#upload-note")).to_contain_text("No data from the file was kept")
    page.reload()
    expect(page.locator("main")).not_to_contain_text("Paused uploads")
    assert list((site.data_dir / "staging").glob("*")) == []


def test_a_program_sends_the_file_in_chunks_with_its_token(site, large, expected, token, sign_in):
    url = f"{site.address}/api/v1/studies/{STUDY}/extracts/large.csv?validate_only=1"
    options = ["-sS", "--fail-with-body", "-T", str(large), "-H", f"Authorization: Bearer {token}"]
    options += ["-H", "Transfer-Encoding: chunked"]  # in one piece: test_no_trace.py
    done = subprocess.run(["curl", *options, url], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    page = sign_in("operator")
    page.goto(f"{site.address}/operator/batches/{json.loads(done.stdout)['batch']}/")
    assert of_page(page, site) == expected
