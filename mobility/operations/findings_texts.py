"""The text of every finding. %(name)s is a fact, %(subject)s what the finding is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Lazy = str | Promise


@dataclass(frozen=True, slots=True)
class Trouble:
    """Title, what was found, what to do."""

    title: Lazy
    what: Lazy
    todo: Lazy


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words of one code; `variants` by the fact `why`. `fine` is empty where a table tells it (status.py)."""

    component: Lazy
    fine: Lazy = ""
    trouble: Trouble
    variants: Mapping[str, Trouble] = field(default_factory=dict)


TEXTS: Final[dict[str, Text]] = {
    "database_unreachable": Text(
        component=_("Database: %(subject)s"),
        fine=_("It answers within %(ms)s and holds %(bytes)s."),
        trouble=Trouble(
            _("The %(subject)s database does not answer"),
            _("No connection could be opened (%(error)s)."),
            _("Start the database server, or correct its address. Nothing is lost: work goes on by itself."),
        ),
    ),
    "migrations_pending": Text(
        component=_("Migrations: %(subject)s"),
        fine=_("The database fits this version."),
        trouble=Trouble(
            _("The %(subject)s database is older than the program"),
            _("Migrations that were not run: %(migrations)s."),
            _("Make a backup, then run manage.py migrate for the main database and for the vault."),
        ),
    ),
    "broker_unreachable": Text(
        component=_("Broker"),
        fine=_("It answers within %(ms)s."),
        trouble=Trouble(
            _("The broker does not answer"),
            _(
                "No connection to Redis could be opened (%(error)s). Files can be sent, but nobody "
                "reads them."
            ),
            _("Start Redis, or correct REDIS_URL. Batches that wait go on by themselves."),
        ),
        variants={
            "asleep": Trouble(
                _("The embedded broker is not running"),
                _("No command needs it now."),
                _("Nothing: the next command that needs it starts it."),
            )
        },
    ),
    "workers_missing": Text(
        component=_("Workers: %(subject)s"),
        fine=_("Workers: %(workers)s. Their processes: %(processes)s."),
        trouble=Trouble(
            _("No worker for the queue %(subject)s"),
            _("No worker of this queue has shown a sign of life within a minute."),
            _("Start a worker. If one runs, look at its log: perhaps it cannot reach the main database."),
        ),
        variants={
            "asleep": Trouble(
                _("The embedded worker is not running"),
                _("No command needs it now."),
                _("Nothing: the next command that needs it starts it."),
            )
        },
    ),
    "worker_silent": Text(
        component=_("Signs of life of workers"),
        fine=_("None is silent. Alive: %(workers)s."),
        trouble=Trouble(
            _("The worker %(subject)s is silent"),
            _("Its last sign of life was %(silent_s)s ago, and it did not say that it stops."),
            _(
                "Look at its host and its log, and start it again. If it is gone for good, do "
                "nothing: it is forgotten after a day."
            ),
        ),
    ),
    "queue_long": Text(
        component=_("Queue %(subject)s"),
        trouble=Trouble(
            _("Tasks wait long in the queue %(subject)s"),
            _("Tasks that wait: %(tasks)s. The oldest has waited for %(oldest_s)s."),
            _("If workers are busy all the time, start more of them; else look at their logs."),
        ),
    ),
    "job_failed": Text(
        component=_("Job: %(subject)s"),
        trouble=Trouble(
            _("The job “%(subject)s” has failed"),
            _("Its last run failed %(age_s)s ago (%(failure)s)."),
            _("It is tried again by itself. If it goes on failing, look at the log of the workers."),
        ),
        variants={
            "late": Trouble(
                _("The job “%(subject)s” is late"),
                _("It is to run %(every_s)s, and last ended well %(age_s)s ago."),
                _("Look whether workers are busy with something that does not end, and at their logs."),
            ),
            "never": Trouble(
                _("The job “%(subject)s” has never run"),
                _("It is to run %(every_s)s, and workers have been there for longer."),
                _("Look at the logs of the workers, and whether all run this version."),
            ),
        },
    ),
    "disk_low": Text(
        component=_("Disk: %(subject)s"),
        fine=_("Free: %(free_bytes)s of %(total_bytes)s (%(free_percent)s)."),
        trouble=Trouble(
            _("Little space is left: %(subject)s"),
            _("Free: %(free_bytes)s of %(total_bytes)s (%(free_percent)s)."),
            _("Make room or add a disk. While it is full, uploads and backups fail, and databases may stop."),
        ),
        variants={
            "silent": Trouble(
                _("No answer from its disk: %(subject)s"),
                _("Asked how much is free, it has said nothing for %(silent_s)s."),
                _(
                    "Is it a network disk? Bring its server back, or mount it anew. Until then whatever "
                    "needs this folder waits."
                ),
            ),
        },
    ),
    "keystore_unusable": Text(
        component=_("Keystore"),
        fine=_("It is private, and can be read. Keys of studies in it: %(keys)s."),
        trouble=Trouble(
            _("The keystore cannot be used"),
            _("Its folder cannot be read or written by this process."),
            _("Give the folder to the account that runs web server and workers, with mode 700."),
        ),
        variants={
            "absent": Trouble(
                _("There is no keystore"),
                _("The folder of keys is missing although studies are open."),
                _(
                    "Mount the folder that MOBILITY_KEYSTORE_DIR names. Do not create an empty one in its "
                    "place."
                ),
            ),
            "open": Trouble(
                _("Others can read the keystore"),
                _("The folder of keys is open to other accounts of this host."),
                _(
                    "Narrow it: chmod 700. Whoever read a key can undo the noise: find out whether "
                    "somebody did."
                ),
            ),
        },
    ),
    "key_missing": Text(
        component=_("Keys of open studies"),
        fine=_("Each is in the keystore: %(keys)s."),
        trouble=Trouble(
            _("The key of %(subject)s is missing"),
            _("The study is open, and its key is not in the keystore: its files cannot be taken in."),
            _("Mount the right keystore, or restore the key from its escrow."),
        ),
        variants={
            "damaged": Trouble(
                _("The key of %(subject)s is damaged"),
                _("Its file has another length than a key, or cannot be read."),
                _("Restore the key from its escrow."),
            )
        },
    ),
    "key_due": Text(
        component=_("Keys to be destroyed"),
        fine=_("None is due soon."),
        trouble=Trouble(
            _("The key of %(subject)s is to be destroyed soon"),
            _("It was promised to be destroyed on %(day)s."),
            _("Let the last files in, close the days, then close the study. That destroys its key."),
        ),
        variants={
            "over": Trouble(
                _("The key of %(subject)s should have been destroyed"),
                _("It was promised to be destroyed on %(day)s, and the study is still open."),
                _("Close the study now. That destroys its key."),
            ),
            "unerased": Trouble(
                _("%(subject)s is closed, but not erased"),
                _("It was closed on %(day)s, and its key, or what the key sealed, may still be there."),
                _("It is tried again every hour. If this stays, close it once more: the command says why."),
            ),
        },
    ),
    "batch_failed": Text(
        component=_("Batches that failed"),
        fine=_("None for %(within_s)s."),
        trouble=Trouble(
            _("Batches of %(subject)s have failed"),
            _("Batches that failed within %(within_s)s: %(batches)s. What they held has not come since."),
            _("The page of each says why: operators find it under Uploads. Send the corrected file again."),
        ),
    ),
    "batch_waiting": Text(
        component=_("Batches that wait"),
        fine=_("Unfinished: %(batches)s. None has waited for long."),
        trouble=Trouble(
            _("Batches of %(subject)s wait"),
            _("Batches that wait for their turn: %(batches)s, the oldest for %(oldest_s)s."),
            _("Look whether workers run. If they are busy all the time, start more of them."),
        ),
        variants={
            "stuck": Trouble(
                _("A batch of %(subject)s does not move"),
                _("Batches without a sign of life: %(batches)s, the oldest for %(oldest_s)s."),
                _(
                    "Look whether workers run and reach the broker and both databases. Then it goes on by "
                    "itself."
                ),
            ),
            "held_up": Trouble(
                _("A batch of %(subject)s is held up"),
                _("Batches that wait for a key or a storage: %(batches)s, the oldest for %(oldest_s)s."),
                _(
                    "Its page says what it waits for. Mount that on every host of workers: then it goes on "
                    "by itself. If it is lost for good: manage.py cancel_batch BATCH --give-up."
                ),
            ),
        },
    ),
    "feed_late": Text(
        component=_("Feeds"),
        fine=_("Studies that receive files without a person: %(studies)s. None waits for a day."),
        trouble=Trouble(
            _("Files of %(subject)s are late"),
            _("Days without a file: %(days)s, the first is %(day)s."),
            _("Ask whoever sends them. If a day never comes, close it: then nobody waits for it."),
        ),
    ),
    "day_open": Text(
        component=_("Open days"),
        fine=_("None has been over for long. Open: %(days)s."),
        trouble=Trouble(
            _("A day of %(subject)s is still open"),
            _("Days that wait to be closed: %(days)s. The oldest is %(day)s and ended %(over_s)s ago."),
            _(
                "When all its files are there, close it (Uploads, or manage.py close_days): only then "
                "is it counted."
            ),
        ),
        variants={
            "not_closed": Trouble(
                _("Published days of %(subject)s are not closed"),
                _(
                    "Days that were published and are not closed: %(days)s. Their sealed times stay until "
                    "close_days."
                ),
                _("When nothing more is to come for them, close them: Uploads, or manage.py close_days."),
            )
        },
    ),
    "handover_waiting": Text(
        component=_("Handing over to the analysts' server"),
        fine=_("Nothing has waited for long."),
        trouble=Trouble(
            _("Totals of %(subject)s wait to be handed over"),
            _(
                "Publications that the analysts' server has not taken: %(publications)s, the oldest "
                "for %(oldest_s)s."
            ),
            _("Look whether it runs and knows this sender. What waits is sent by itself."),
        ),
        variants={
            "ahead": Trouble(
                _("The analysts' server claims what was never sent of %(subject)s"),
                _(
                    "It lists publications that this vault does not know, or calls the study closed. Nothing "
                    "is sent to it, so that nobody is counted twice. Files are taken in as before."
                ),
                _(
                    "If the vault was restored, restore the analysts' server from a backup of the same time "
                    "or before. If not, ask the people who run that server: somebody may have changed it."
                ),
            )
        },
    ),
    "study_stopped": Text(
        component=_("Vault and totals"),
        fine=_("They fit."),
        trouble=Trouble(
            _("%(subject)s has stopped after a restore"),
            _("Analysts have totals of it that the vault does not know: going on would count people twice."),
            _("Restore both databases from backups that fit (docs/backup.md)."),
        ),
        variants={
            "presence": Trouble(
                _("%(subject)s has stopped after a restore"),
                _("A day that was published before could be published again, with the same noise."),
                _(
                    "If no day of it was closed since the backup, restore again with --no-day-closed-since. "
                    "Otherwise its reports stay as they are, and nothing can be added."
                ),
            )
        },
    ),
    "ledger_broken": Text(
        component=_("Ledger"),
        fine=_("It was whole when it was last checked. Entries: %(entries)s."),
        trouble=Trouble(
            _("The ledger does not fit together"),
            _("The last check found that entries were changed or lost; the first is %(number)s."),
            _(
                "Keep a copy of the database as it is, compare with the last export, and tell the privacy "
                "officer."
            ),
        ),
        variants={
            "unchecked": Trouble(
                _("The ledger was not checked lately"),
                _("Workers check it every hour. Entries: %(entries)s."),
                _("Look whether workers run; or check it on its page."),
            )
        },
    ),
    "backup_old": Text(
        component=_("Last backup"),
        fine=_("It was made %(age_s)s ago and holds %(bytes)s."),
        trouble=Trouble(
            _("The last backup is old"),
            _("It was made %(age_s)s ago."),
            _("Run manage.py backup, and look why the planned one did not run."),
        ),
        variants={
            "never": Trouble(
                _("There is no backup"),
                _("None has been made of this installation."),
                _("Plan manage.py backup for every day, and try a restore once."),
            )
        },
    ),
    "escrow_old": Text(
        component=_("Escrow of keys"),
        fine=_("Keys of open studies in no escrow: %(keys)s. MOBILITY_ESCROW is %(escrow)s."),
        trouble=Trouble(
            _("Keys are in no escrow"),
            _("Keys of open studies that are in no escrow: %(keys)s. If their disk is lost, so are they."),
            _(
                "Decide whether keys are to survive the loss of their disk. If so, run manage.py "
                "escrow_keys; if not, set MOBILITY_ESCROW=none."
            ),
        ),
    ),
    "settings_unsafe": Text(
        component=_("Settings"),
        fine=_("The system checks found nothing."),
        trouble=Trouble(
            _("A setting is unsafe: %(subject)s"),
            _("The system check %(subject)s found something."),
            _("Run manage.py check --deploy: it says what and why."),
        ),
        variants={
            "no_https": Trouble(
                _("Pages are served without TLS"),
                _("ALLOWED_HOSTS names other hosts than this machine, and HTTPS is false."),
                _("Put a proxy that terminates TLS in front of it, and set HTTPS=true."),
            ),
            "debug": Trouble(
                _("DEBUG is on"),
                _("Error pages show code and settings to whoever sees them."),
                _("Set DEBUG=false and start the web server again."),
            ),
        },
    ),
    "alert_untold": Text(
        component=_("Alerts by %(subject)s"),
        fine=_("The channel takes what it is told."),
        trouble=Trouble(
            _("Alerts cannot be sent by %(subject)s"),
            _("The channel refused the last message (%(error)s)."),
            _("Correct its address or password, and run manage.py test_alerts."),
        ),
    ),
    "look_failed": Text(
        component=_("Looking"),
        fine=_("Everything could be looked at."),
        trouble=Trouble(
            _("Something could not be looked at: %(subject)s"),
            _("The look failed (%(error)s), so nothing is known of it."),
            _("Look at the log. If it stays, report it with its kind and the version."),
        ),
    ),
}
