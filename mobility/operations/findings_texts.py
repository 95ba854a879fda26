"""The text of every finding. %(name)s is a fact, %(subject)s what the finding is about."""

from typing import Final, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Lazy = str | Promise


class Trouble(NamedTuple):
    """Title, what was found, what to do."""

    title: Lazy
    what: Lazy
    todo: Lazy


# By code: the name of the component, and its text while it is healthy; empty if a table shows it.
FINE: Final[dict[str, tuple[Lazy, Lazy]]] = {
    "database_unreachable": (
        _("Database: %(subject)s"),
        _("Response time: %(ms)s. Database size: %(bytes)s."),
    ),
    "migrations_pending": (_("Migrations: %(subject)s"), _("The database schema is up to date.")),
    "broker_unreachable": (_("Broker"), _("Response time: %(ms)s.")),
    "workers_missing": (_("Workers: %(subject)s"), _("Workers: %(workers)s. Processes: %(processes)s.")),
    "worker_silent": (_("Worker responses"), _("All workers are responding. Running: %(workers)s.")),
    "queue_long": (_("Queue %(subject)s"), ""),
    "job_failed": (_("Job: %(subject)s"), ""),
    "disk_low": (_("Disk: %(subject)s"), _("Free: %(free_bytes)s of %(total_bytes)s (%(free_percent)s).")),
    "keystore_unusable": (
        _("Keystore"),
        _("Only this account can access the keystore. Study keys: %(keys)s."),
    ),
    "key_missing": (
        _("Keys of open studies"),
        _("The keystore contains the keys of all open studies. Keys: %(keys)s."),
    ),
    "key_due": (_("Key destruction"), _("No key is due for destruction soon.")),
    "batch_failed": (_("Failed batches"), _("Unresolved failures in the last %(within_s)s: none.")),
    "batch_waiting": (
        _("Waiting batches"),
        _("Unfinished batches: %(batches)s. Waiting times are normal."),
    ),
    "feed_late": (_("Feeds"), _("Studies with automatic uploads: %(studies)s. No file is overdue.")),
    "day_open": (_("Open days"), _("No day is overdue for closing. Days still open: %(days)s.")),
    "handover_waiting": (
        _("Handover to the analyst server"),
        _("No handover of totals is overdue."),
    ),
    "study_stopped": (_("Vault and totals"), _("Vault and totals are consistent.")),
    "zone_crowded": (
        _("Crowded zones"),
        _("No zone is expected to exceed its limit. Zones with a limit: %(limits)s."),
    ),
    "ledger_broken": (_("Ledger"), _("Integrity verified at the last check. Entries: %(entries)s.")),
    "backup_old": (_("Last backup"), _("The last backup was made %(age_s)s ago. Size: %(bytes)s.")),
    "escrow_old": (
        _("Key escrow"),
        _("Open studies whose key has no escrow copy: %(keys)s. MOBILITY_ESCROW is %(escrow)s."),
    ),
    "main_shared": (_("Main database of this zone"), _("No other zone uses this database.")),
    "settings_unsafe": (_("Settings"), _("The system checks found no problems.")),
    "alert_untold": (_("Alerts by %(subject)s"), _("Alert delivery is working.")),
    "look_failed": (_("Health checks"), _("All health checks ran.")),
}
# By code and the fact `why`; empty: any other.
TROUBLES: Final[dict[tuple[str, str], Trouble]] = {
    ("database_unreachable", ""): Trouble(
        _("The %(subject)s database is not responding"),
        _("The connection failed (%(error)s)."),
        _(
            "Start the database server, or correct its address. No data is lost: processing "
            "resumes automatically."
        ),
    ),
    ("migrations_pending", ""): Trouble(
        _("The %(subject)s database schema is older than the software"),
        _("Migrations not applied: %(migrations)s."),
        _("Make a backup, then run manage.py migrate for the main database and for the vault."),
    ),
    ("broker_unreachable", ""): Trouble(
        _("The broker is not responding"),
        _(
            "The connection to Redis failed (%(error)s). Files can be uploaded, but workers "
            "cannot process them."
        ),
        _("Start Redis, or correct REDIS_URL. Waiting batches resume automatically."),
    ),
    ("broker_unreachable", "asleep"): Trouble(
        _("The embedded broker is not running"),
        _("No commands currently need this service."),
        _("No action needed. The next command that needs this service will start it."),
    ),
    ("workers_missing", ""): Trouble(
        _("No worker for the queue %(subject)s"),
        _("No worker for this queue has responded within the last minute."),
        _(
            "Start a worker. If one is already running, check its log, because the worker may be "
            "unable to reach the main database."
        ),
    ),
    ("workers_missing", "asleep"): Trouble(
        _("The embedded worker is not running"),
        _("No commands currently need this service."),
        _("No action needed. The next command that needs this service will start it."),
    ),
    ("worker_silent", ""): Trouble(
        _("The worker %(subject)s is not responding"),
        _("The worker last responded %(silent_s)s ago and did not report that it was stopping."),
        _(
            "Check the worker's host and log, then restart the worker. If you removed the worker on "
            "purpose, no action is needed: it will disappear from this list after a day."
        ),
    ),
    ("queue_long", ""): Trouble(
        _("Tasks have been waiting too long in the “%(subject)s” queue"),
        _("Waiting tasks: %(tasks)s. The oldest task has been waiting for %(oldest_s)s."),
        _("If the workers are always busy, start more of them. Otherwise, check their logs."),
    ),
    ("job_failed", ""): Trouble(
        _("The job “%(subject)s” failed"),
        _("The last run failed %(age_s)s ago (%(failure)s)."),
        _("The job is retried automatically. If it keeps failing, check the worker log."),
    ),
    ("job_failed", "late"): Trouble(
        _("The job “%(subject)s” is overdue"),
        _("Scheduled %(every_s)s; last succeeded %(age_s)s ago."),
        _("Check whether a long-running task is blocking the workers, and check their logs."),
    ),
    ("job_failed", "never"): Trouble(
        _("The job “%(subject)s” has never run"),
        _(
            "The job is scheduled %(every_s)s, and workers have been running for longer than this "
            "interval, but the job has not run."
        ),
        _("Check the worker logs, and check that all workers run the same software version as this server."),
    ),
    ("disk_low", ""): Trouble(
        _("Low disk space: %(subject)s"),
        _("Free: %(free_bytes)s of %(total_bytes)s (%(free_percent)s)."),
        _(
            "Free some space or add a disk. When the disk is full, uploads and backups fail, and "
            "databases may stop."
        ),
    ),
    ("disk_low", "silent"): Trouble(
        _("Disk not responding: %(subject)s"),
        _("The disk has not reported its free space for %(silent_s)s."),
        _(
            "If this is a network disk, restore its server or remount the disk. Work that needs this "
            "folder will wait until then."
        ),
    ),
    ("keystore_unusable", ""): Trouble(
        _("The keystore cannot be used"),
        _("This process cannot read the keystore folder or write to it."),
        _(
            "Change the owner of the folder to the account that runs the web server and the workers, and "
            "set its mode to 700."
        ),
    ),
    ("keystore_unusable", "absent"): Trouble(
        _("The keystore is missing"),
        _("The keystore folder is missing, but there are open studies."),
        _("Mount the folder set in MOBILITY_KEYSTORE_DIR. Do not replace it with an empty folder."),
    ),
    ("keystore_unusable", "open"): Trouble(
        _("Other accounts can read the keystore"),
        _("Other accounts on this host can access the keystore folder."),
        _(
            "Restrict access to the keystore folder with chmod 700. Then find out whether any key has "
            "been read. Anyone who has read a key can remove the noise."
        ),
    ),
    ("key_missing", ""): Trouble(
        _("The key of study %(subject)s is missing"),
        _("The study is open, but its key is not in the keystore, so its files cannot be processed."),
        _("Mount the right keystore, or restore the key from its escrow copy."),
    ),
    ("key_missing", "damaged"): Trouble(
        _("The key of study %(subject)s is damaged"),
        _("The key file cannot be read or has the wrong length."),
        _("Restore the key from its escrow copy."),
    ),
    ("key_due", ""): Trouble(
        _("The key of study %(subject)s is due for destruction soon"),
        _("The study definition states that the key will be destroyed by %(day)s."),
        _("Upload the last files, close the days, then close the study. Closing the study destroys its key."),
    ),
    ("key_due", "over"): Trouble(
        _("The key of study %(subject)s is overdue for destruction"),
        _(
            "The study definition stated that the key would be destroyed by %(day)s, but the study is still "
            "open."
        ),
        _("Close the study now. Closing the study destroys its key."),
    ),
    ("key_due", "unerased"): Trouble(
        _("Study %(subject)s is closed but not erased"),
        _("The study was closed on %(day)s. Its key, or data sealed with the key, may still exist."),
        _(
            "Erasure is retried every hour. If it keeps failing, run manage.py close_study again, which "
            "prints the reason."
        ),
    ),
    ("batch_failed", ""): Trouble(
        _("Failed batches in study %(subject)s"),
        _(
            "Batches that failed in the last %(within_s)s: %(batches)s. Their data has not been uploaded "
            "again since."
        ),
        _(
            "Operators can find the reason on each batch's page, under Uploads. Correct the file, then "
            "upload it again."
        ),
    ),
    ("batch_waiting", ""): Trouble(
        _("Batches in study %(subject)s are waiting"),
        _("Batches in the queue: %(batches)s. The oldest batch has been waiting for %(oldest_s)s."),
        _("Check that workers are running. If all workers are always busy, start more."),
    ),
    ("batch_waiting", "stuck"): Trouble(
        _("A batch in study %(subject)s is not making progress"),
        _(
            "Batches whose worker is not responding: %(batches)s. The first worker stopped responding "
            "%(oldest_s)s ago."
        ),
        _(
            "Check that workers are running and can reach the broker and both databases. The "
            "batch then resumes automatically."
        ),
    ),
    ("batch_waiting", "held_up"): Trouble(
        _("A batch in study %(subject)s is paused"),
        _(
            "Batches waiting for a key or storage: %(batches)s. The oldest batch has been waiting for "
            "%(oldest_s)s."
        ),
        _(
            "The batch's page names the missing key or storage. Mount it on every host that runs "
            "workers, and the batch resumes automatically. If the key or storage is lost permanently, "
            "run manage.py cancel_batch BATCH --give-up."
        ),
    ),
    ("feed_late", ""): Trouble(
        _("Files for study %(subject)s are overdue"),
        _("Days without a file: %(days)s. The first of these days is %(day)s."),
        _(
            "Ask the sender whether more files are coming. If no more files are expected for a particular "
            "day, close that day to clear this alert."
        ),
    ),
    ("day_open", ""): Trouble(
        _("Study %(subject)s has a day that is still open"),
        _("Days waiting to be closed: %(days)s. The oldest day is %(day)s, which ended %(over_s)s ago."),
        _(
            "When all files for a day have arrived, close the day under Uploads or with manage.py "
            "close_days. The day is not counted until you close it."
        ),
    ),
    ("day_open", "not_closed"): Trouble(
        _("Study %(subject)s has days that are published but not closed"),
        _(
            "Days published but not closed: %(days)s. The vault keeps the sealed event times and places "
            "of these days until the days are closed."
        ),
        _(
            "When no more files are expected for these days, close the days under Uploads or with "
            "manage.py close_days."
        ),
    ),
    ("handover_waiting", ""): Trouble(
        _("Totals for study %(subject)s are waiting to be handed over"),
        _(
            "Publications that the analyst server has not accepted: %(publications)s. The oldest "
            "publication has been waiting for %(oldest_s)s."
        ),
        _(
            "Check that the analyst server is running and that this installation is registered there as a "
            "sender. Any totals still waiting will then be sent automatically."
        ),
    ),
    ("handover_waiting", "ahead"): Trouble(
        _("The analyst server has data for study %(subject)s that this zone has no record of sending"),
        _(
            "The analyst server lists publications that this vault has no record of, or lists the "
            "study as closed. To avoid counting people twice, this zone has stopped sending totals "
            "to the analyst server. You can still upload files to this zone."
        ),
        _(
            "If the vault was restored, restore the analyst server too, from a backup no newer than "
            "the vault's backup. Otherwise, ask the administrators of the analyst server whether its "
            "data was changed."
        ),
    ),
    ("study_stopped", ""): Trouble(
        _("Study %(subject)s has been stopped after a restore"),
        _(
            "Analysts have totals for this study that are not recorded in the vault. Continuing the "
            "study would count people twice."
        ),
        _("Restore both databases from matching backups (docs/backup.md)."),
    ),
    ("study_stopped", "presence"): Trouble(
        _("Study %(subject)s has been stopped after a restore"),
        _(
            "A published day could be published again with the same noise but different counts. The "
            "difference between the two publications would reveal what the noise hides."
        ),
        _(
            "If no day of the study was closed after the backup was made, restore the backup again "
            "with --no-day-closed-since. If a day was closed after the backup, the reports stay as "
            "they are, and you cannot add data."
        ),
    ),
    ("zone_crowded", ""): Trouble(
        _("%(zone)s in %(study)s may have more people than the zone's limit allows"),
        _(
            "In the time slot that begins at %(time)s, the zone has an estimated %(low)s to %(high)s "
            "people. Its limit is %(capacity)s."
        ),
        _("Check the zone, and get ready to direct people elsewhere."),
    ),
    ("zone_crowded", "exceeds"): Trouble(
        _("%(zone)s in %(study)s has more people than its limit allows"),
        _(
            "In the time slot that begins at %(time)s, the zone has an estimated %(low)s to %(high)s "
            "people. Its limit is %(capacity)s."
        ),
        _("Check the zone, and direct people to other zones."),
    ),
    ("ledger_broken", ""): Trouble(
        _("The ledger failed its integrity check"),
        _("The last check found changed or missing entries. The first of them is entry %(number)s."),
        _(
            "Keep a copy of the database in its current state. Compare it with the last ledger "
            "export, and inform the privacy officer."
        ),
    ),
    ("ledger_broken", "unchecked"): Trouble(
        _("The ledger has not been checked recently"),
        _("Workers normally check the ledger every hour. Entries: %(entries)s."),
        _("Check that workers are running, or start a check on the ledger page."),
    ),
    ("backup_old", ""): Trouble(
        _("The last backup is too old"),
        _("The last backup was made %(age_s)s ago."),
        _("Run manage.py backup, and find out why the scheduled backup did not run."),
    ),
    ("backup_old", "never"): Trouble(
        _("No backup has been made"),
        _("This installation has never been backed up."),
        _("Schedule manage.py backup to run daily, and test a restore once."),
    ),
    ("escrow_old", ""): Trouble(
        _("Some keys have no escrow copy"),
        _(
            "Open studies whose key has no escrow copy: %(keys)s. If the disk with these keys is "
            "lost, the keys are lost too."
        ),
        _(
            "Decide whether the keys must survive the loss of their disk. If so, run manage.py "
            "escrow_keys. If not, set MOBILITY_ESCROW=none."
        ),
    ),
    ("main_shared", ""): Trouble(
        _("Two zones share the main database"),
        _("Evidence: %(seen)s. Anyone with access to the analyst server could run code in this zone."),
        _(
            "Stop both zones, then give each zone its own main database (docs/upgrading.md). No counts "
            "will be lost."
        ),
    ),
    ("settings_unsafe", ""): Trouble(
        _("Unsafe setting: %(subject)s"),
        _("The system check %(subject)s found a problem."),
        _("Run manage.py check --deploy to see the problem and how to fix it."),
    ),
    ("settings_unsafe", "no_https"): Trouble(
        _("Pages are served without TLS"),
        _("ALLOWED_HOSTS includes hosts other than this machine, but HTTPS is false."),
        _("Put a proxy that terminates TLS in front of the site, and set HTTPS=true."),
    ),
    ("settings_unsafe", "debug"): Trouble(
        _("DEBUG is on"),
        _("Error pages show code and settings to anyone who sees them."),
        _("Set DEBUG=false and restart the web server."),
    ),
    ("alert_untold", ""): Trouble(
        _("Alerts cannot be sent via %(subject)s"),
        _("The alert channel refused the last message (%(error)s)."),
        _("Correct the channel's address or password, and run manage.py test_alerts."),
    ),
    ("look_failed", ""): Trouble(
        _("A health check failed to run: %(subject)s"),
        _("The check failed (%(error)s), so the state of this component is unknown."),
        _("Check the log. If this persists, report it with the error type and the version."),
    ),
}
