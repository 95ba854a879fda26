"""An operator zone alone hands over to an analyst server by HTTPS, under faults of server and line."""

import json
import shutil
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from mobility.base.runtime import RuntimePaths
from reports.transfer.messages import Envelope, digest_of
from scripts import services
from tests.demo_study import STUDY, slots_text, write_study
from tests.e2e.deployment import AnalystServer, Certificate, Running, certificate, totals_of, wait_until
from tests.e2e.lines import Line, line_to
from tests.e2e.several import outcomes, put_databases

pytestmark = pytest.mark.e2e


@dataclass
class Apart:
    operator: Running
    analyst: AnalystServer
    whole: Running
    line: Line
    tls: Certificate
    files: list[Path]

    def ingest(self, file):
        words = ("ingest", STUDY, str(file))
        with self.whole.command(*words) as whole:
            (ours,) = outcomes([words], self.operator.environment)
            _, others = whole.communicate(timeout=300)
        assert (ours.code, whole.returncode) == (0, 0), ours.errors + others
        return json.loads(ours.output), ours.errors

    def expected(self):
        return totals_of(RuntimePaths(self.whole.data).main_database, STUDY)

    def found(self):
        return totals_of(self.analyst.database(), STUDY)

    def wait(self):
        wait_until(lambda: self.found() == self.expected(), what="the totals to be handed over")

    def ask_there(self, **environment):
        module = "mobility.batches.publication.analyst_server"
        code = f"from {module} import AnalystServer; AnalystServer().state('{STUDY}')"
        return outcomes([("shell", "--no-imports", "-c", code)], self.operator.environment | environment)[0]

    def state(self):
        envelope = Envelope(
            kind="state", sender="north", study=STUDY, item="", sent_at=int(time.time()),
            digest=digest_of(b""),
        )  # fmt: skip
        url = f"{self.analyst.address}/api/v1/intake/studies/{STUDY}/state"
        request = Request(url, headers=envelope.signed(sender_key(self.operator)))  # noqa: S310
        context = ssl.create_default_context(cafile=str(self.tls.file))
        with urlopen(request, context=context, timeout=20) as response:  # noqa: S310
            return json.load(response)


def sender_key(operator):
    return load_pem_private_key(RuntimePaths(operator.data).sender_key.read_bytes(), password=None)


@pytest.fixture(scope="module")
def apart(extract, migrated):
    with services.private_folder("zones") as root:
        tls = certificate(root / "tls")
        analyst = AnalystServer(root / "analyst", tls=tls)
        with line_to(analyst.port, scheme="https") as line:
            own = {"MOBILITY_ANALYST_URL": line.address, "MOBILITY_ANALYST_CA_FILE": str(tls.file)}
            own |= {"MOBILITY_ZONE": "operator", "MOBILITY_SENDER_NAME": "north"}
            # The first answer of a server compiles kernels.
            own |= {"MOBILITY_HANDOVER_RETRY_S": "1", "MOBILITY_HANDOVER_TIMEOUT_S": "120"}
            for name in ("operator", "whole"):
                (root / name).mkdir()
                put_databases(migrated, root / name / "data")
            with (
                Running(root / "operator", environment=own) as operator,
                Running(root / "whole") as whole,
            ):
                made = Apart(operator, analyst, whole, line, tls, extract)
                try:
                    introduce(made, root)
                    yield made
                finally:
                    analyst.stop()


def introduce(apart, folder):
    printed = apart.operator.manage("sender_key")
    apart.analyst.value("register_sender", printed["sender"], printed["public_key"])
    apart.analyst.start()
    study = write_study(folder, more=slots_text())
    for installation in (apart.operator, apart.whole):
        created = installation.manage("create_study", str(study))
        assert created == {"study": STUDY, "indicators": 7, "windows": 28}
    # With one key both give the same answers, so that totals can be compared byte for byte.
    stores = [RuntimePaths(each.data).keystore for each in (apart.operator, apart.whole)]
    shutil.copy(*(next(store.glob(f"study-{STUDY}-*.key")) for store in stores))


def test_totals_are_those_of_one_installation(apart):
    assert apart.state()["is_known"]
    printed, errors = apart.ingest(apart.files[0])
    assert printed["published"]
    assert "cannot be reached" not in errors
    assert apart.found() == apart.expected()
    assert any(any(counts) for counts in apart.found().values())


def test_slots_are_handed_over_with_their_noise_and_forecast_there(apart):
    for installation in (apart.operator, apart.whole):
        installation.manage("close_slots", STUDY, "--through", "2017-05-31")
    words = {"presence": ("export_presence", STUDY), "forecast": ("forecast", STUDY, "--horizons", "2")}
    expected = {name: apart.whole.manage(*each) for name, each in words.items()}
    assert sum(slot["status"] == "ok" for slot in expected["presence"]["slots"]) == 48
    assert expected["forecast"]["n_known"] == 48

    def found(name):
        (outcome,) = apart.analyst.outcomes(words[name])
        return json.loads(outcome.output) if outcome.code == 0 else None

    wait_until(lambda: found("presence") == expected["presence"], what="the slots to be handed over")
    assert found("forecast") == expected["forecast"]


def test_a_server_that_is_down_gets_it_later(apart):
    apart.analyst.stop()
    printed, errors = apart.ingest(apart.files[1])
    assert not printed["published"]
    assert "the analyst server does not have all totals yet" in errors
    assert apart.found() != apart.expected()
    apart.analyst.start()
    apart.wait()


def test_a_server_that_is_killed_again_and_again_loses_nothing_and_counts_nothing_twice(apart):
    is_over, before = threading.Event(), len(apart.state()["publications"])

    def kill():
        # Before, while and after it boots, and while it answers.
        for pause_s in (0.2, 0.5, 1, 1.5, 2.5, 4):
            if is_over.wait(pause_s):
                return
            apart.analyst.stop()
            apart.analyst.start(waits=False)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for file in apart.files[2:4]:
            apart.ingest(file)
    finally:
        is_over.set()
        killer.join()
    apart.analyst.stop()
    apart.analyst.start()
    apart.wait()
    assert len(apart.state()["publications"]) == before + 2


def test_what_was_taken_and_not_answered_counts_once(apart):
    line, before = apart.line, len(apart.state()["publications"])
    line.carried.clear()
    apart.ask_there()
    # Questions are answered, what is longer is not.
    # The next question tells that it arrived, so that it is sent once: the publication, and then the receipt.
    longest, lost = min(line.carried) + 200, []

    def answers(carried):
        if carried <= longest or len(lost) == 2:
            return True
        lost.append(carried)
        return False

    line.lets_down = answers
    apart.ingest(apart.files[4])
    wait_until(lambda: len(lost) == 2, what="lost answers")
    apart.wait()
    assert len(apart.state()["publications"]) == before + 1


def test_a_server_without_a_known_certificate_is_told_nothing(apart):
    refused = apart.ask_there(MOBILITY_ANALYST_CA_FILE="")
    assert refused.code != 0
    assert "the certificate of the analyst server cannot be verified" in refused.errors


def test_days_and_the_study_are_closed_over_there_too_and_both_ledgers_are_whole(apart):
    for installation in (apart.operator, apart.whole):
        installation.manage("close_days", STUDY, "--through", "2017-06-04")
    apart.wait()
    apart.analyst.stop()
    apart.ingest(apart.files[5])
    (refused,) = outcomes([("close_study", STUDY)], apart.operator.environment)
    assert refused.code != 0
    assert "Nothing was erased" in refused.errors
    apart.analyst.start()
    apart.wait()
    apart.operator.manage("close_slots", STUDY, "--through", "2017-06-05")
    certificate = apart.operator.manage("close_study", STUDY)
    wait_until(lambda: apart.state()["is_closed"], what="the study to be closed over there")
    assert apart.found() == apart.expected()
    code = "from reports.models import SentStudy; print(SentStudy.objects.get().certificate['closed_at'])"
    assert apart.analyst.value("shell", "--no-imports", "-c", code).strip() == certificate["closed_at"]
    wait_until(lambda: len(apart.state()["receipts"]) >= 7, what="receipts of six files and of a closing")
    for printed in (json.loads(apart.analyst.value("verify_ledger")), apart.operator.manage("verify_ledger")):
        assert printed["ok"]


def test_addresses_and_databases_of_the_other_zone_are_absent(apart):
    code = "from django.urls import get_resolver; print(' '.join(sorted(get_resolver().namespace_dict)))"
    names = ("shell", "--no-imports", "-c", code)
    told = *outcomes([names], apart.operator.environment), *apart.analyst.outcomes(names)
    ours, theirs = (set(each.output.split()) for each in told)
    made = {path.name for path in apart.analyst.data.rglob("*")}
    assert not [name for name in made if "vault" in name or "keystore" in name]
    of_operators = {"operator", "administrator", "api"}
    of_analysts = {"reports", "access", "reading", "intake"}
    assert of_operators <= ours and not of_analysts & ours
    assert of_analysts <= theirs and not of_operators & theirs
