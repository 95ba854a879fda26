"""Settings, all from the environment; without any variable they describe the embedded default.

Each variable is explained in `.env.example`. A secret may come from a file: `NAME_FILE=/path` for `NAME`.
"""

import os
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from mobility.base.environment import Env
from mobility.base.runtime import RuntimePaths, stored_secret

env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent

# --- where things are -------------------------------------------------------------------------
MOBILITY_DATA_DIR = Path(env.str("MOBILITY_DATA_DIR", default=str(BASE_DIR / "var"))).resolve()
PATHS = RuntimePaths(MOBILITY_DATA_DIR)
MOBILITY_KEYSTORE_DIR = Path(env.str("MOBILITY_KEYSTORE_DIR", default=str(PATHS.keystore)))
MOBILITY_STAGING_DIR = Path(env.str("MOBILITY_STAGING_DIR", default=str(PATHS.staging)))
MOBILITY_LEDGER_KEY_FILE = Path(env.str("MOBILITY_LEDGER_KEY_FILE", default=str(PATHS.ledger_key)))

# --- zones (design: two zones) ----------------------------------------------------------------
MOBILITY_ZONE = env.choice("MOBILITY_ZONE", default="all", among=("all", "operator", "analyst"))
HAS_VAULT = MOBILITY_ZONE != "analyst"
HAS_REPORTS = MOBILITY_ZONE != "operator"  # the pages and the API of analysts
# The operator zone alone: where its totals go, and with which key they are signed.
ANALYST_URL = env.str("MOBILITY_ANALYST_URL", default="")
MOBILITY_ANALYST_URL = ANALYST_URL.rstrip("/")
MOBILITY_ANALYST_CA_FILE = env.str("MOBILITY_ANALYST_CA_FILE", default="")
MOBILITY_SENDER_NAME = env.str("MOBILITY_SENDER_NAME", default="operator")
MOBILITY_SENDER_KEY_FILE = Path(env.str("MOBILITY_SENDER_KEY_FILE", default=str(PATHS.sender_key)))
MOBILITY_HANDOVER_TIMEOUT_S = env.whole("MOBILITY_HANDOVER_TIMEOUT_S", default=30, least=1)
MOBILITY_HANDOVER_RETRY_S = env.whole("MOBILITY_HANDOVER_RETRY_S", default=60, least=1)
HANDS_OVER = MOBILITY_ZONE == "operator"
# Where there are reports: what is taken from operator zones that run apart.
MOBILITY_INTAKE_MAX_BYTES = env.whole("MOBILITY_INTAKE_MAX_BYTES", default=100_000_000, least=1)

# --- Django -----------------------------------------------------------------------------------
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="") or stored_secret(PATHS.secret_key)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
ROOT_URLCONF = "mobility.urls"
WSGI_APPLICATION = "mobility.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "allauth.usersessions",
    "mobility.signin",
    "reports",
    "mobility.embedded",
    "mobility.operations",
    *(["mobility"] if HAS_VAULT else []),
]
MIDDLEWARE = [
    "mobility.operations.health.HealthMiddleware",  # asked by any host name, and without TLS
    "mobility.operations.metrics.endpoint.MetricsMiddleware",  # as well
    "mobility.operations.requests.RequestIdMiddleware",  # before all that it measures
    "django.middleware.security.SecurityMiddleware",
    "mobility.signin.middleware.HeadersMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "mobility.signin.middleware.NoStoreMiddleware",  # after files that are the same for everyone
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "mobility.operations.requests.BodyLimitMiddleware",  # before a body is read, of whom is known
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "mobility.signin.middleware.LimitsMiddleware",
    "mobility.signin.middleware.SecondFactorMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "reports.accounts.context.site",
            ],
        },
    }
]

# --- databases --------------------------------------------------------------------------------


def _sqlite(path: Path, *, page_bytes: int) -> dict[str, object]:
    """SQLite that survives a crash and waits for its turn: WAL, full sync, immediate transactions.

    `page_bytes` counts where the file is new: an old one keeps its own.
    """
    pragmas = f"PRAGMA page_size={page_bytes}; PRAGMA journal_mode=WAL;"
    pragmas += "PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;"
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {"timeout": 30, "transaction_mode": "IMMEDIATE", "init_command": pragmas},
    }


def _database(variable: str, path: Path, *, page_bytes: int = 4096) -> dict[str, object]:
    """Return the database of a URL; connections stay open, and are tried before use."""
    if not env.str(variable, default=""):
        return _sqlite(path, page_bytes=page_bytes)
    named: dict[str, Any] = {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True, **env.db_url(variable)}
    if named["ENGINE"].endswith("postgresql"):
        # A silent server delays requests only briefly: seconds to connect, milliseconds to answer.
        named["OPTIONS"] = {"connect_timeout": 5, "tcp_user_timeout": 30_000, **named.get("OPTIONS", {})}
    return named


DATABASES = {"default": _database("DATABASE_URL", PATHS.main_database)}
if HAS_VAULT:
    # State of a shard is written as a whole, and takes half the time in pages of four times the usual size.
    DATABASES["vault"] = _database("VAULT_DATABASE_URL", PATHS.vault_database, page_bytes=16_384)
DATABASE_ROUTERS = ["mobility.routers.ZoneRouter"]

# --- tasks ------------------------------------------------------------------------------------
REDIS_URL = env.str("REDIS_URL", default="")
MOBILITY_ALLOW_OPEN_REDIS = env.bool("MOBILITY_ALLOW_OPEN_REDIS", default=False)
EMBEDDED_REDIS = not REDIS_URL
CELERY_BROKER_URL = REDIS_URL or PATHS.redis_url
# Each zone has its own broker; should both be given one, neither takes the other's work.
CELERY_TASK_DEFAULT_QUEUE = "celery" if MOBILITY_ZONE == "all" else MOBILITY_ZONE
CELERY_ACCEPT_CONTENT = ["json"]  # a message with a pickle would run any code of its writer
CELERY_TASK_IGNORE_RESULT = True  # the state of a batch is its row, not a message
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_TIME_LIMIT = env.whole("MOBILITY_TASK_TIME_LIMIT_S", default=3600, least=60)
# A chunk or shard that is stopped here is tried again, until it has been tried too often.
CELERY_TASK_SOFT_TIME_LIMIT = CELERY_TASK_TIME_LIMIT * 9 // 10
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": CELERY_TASK_TIME_LIMIT + 600,
    "socket_connect_timeout": 5,  # a silent broker delays requests only briefly
    "socket_timeout": 5,
    "socket_keepalive": True,
}
# The sweep requests work that a request could not hand to the broker.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.2}
# Of Redis' lists of a queue (0, 3, 6, 9) the first that holds a message is fetched from, oldest first.
# Tasks not listed here are short, and have 0.
CELERY_TASK_ROUTES = {
    "reports.tasks.compute_density": {"priority": 3},  # someone waits for it
    "reports.tasks.make_export": {"priority": 3},
    "reports.tasks.refresh_forecasts": {"priority": 6},
    "mobility.tasks.read_chunk": {"priority": 6},
    "mobility.tasks.apply_shard": {"priority": 6},
    "mobility.tasks.take_in_watched": {"priority": 6},
}
TASK_SENDER = "mobility.workers.app.send"  # by which the analyst zone asks for its own
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker outlives any outage of the broker
# Results of a task count, whether or not the broker hears of its end.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CORES = os.cpu_count() or 1
MOBILITY_WORKER_PROCESSES = env.whole("MOBILITY_WORKER_PROCESSES", default=max(CORES, 2), least=1)
CELERY_WORKER_CONCURRENCY = MOBILITY_WORKER_PROCESSES
# With REMAP_SIGTERM=SIGQUIT a stopping worker continues for this long, and returns the rest.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = env.number("MOBILITY_WORKER_GRACE_S", default=5.0, least=0.0)
MOBILITY_WORKER_NICE = env.whole("MOBILITY_WORKER_NICE", default=19, least=0)  # of its processes
MOBILITY_TASK_MEMORY_MB = env.whole("MOBILITY_TASK_MEMORY_MB", default=2048, least=0)  # 0: unlimited
if MOBILITY_TASK_MEMORY_MB:  # a process that ever had more is replaced after its task; in kB
    CELERY_WORKER_MAX_MEMORY_PER_CHILD = MOBILITY_TASK_MEMORY_MB * 1000
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

# --- pipeline ---------------------------------------------------------------------------------
MOBILITY_MIN_PUBLICATION = env.whole("MOBILITY_MIN_PUBLICATION", default=100, least=1)
MOBILITY_BATCH_LEASE_S = env.whole("MOBILITY_BATCH_LEASE_S", default=120, least=1)  # without a sign of life
MOBILITY_SWEEP_S = env.whole("MOBILITY_SWEEP_S", default=15, least=1)
MOBILITY_READ_THREADS = env.whole("MOBILITY_READ_THREADS", default=min(CORES + 1, 4), least=1)
MOBILITY_CHUNK_BYTES = env.whole("MOBILITY_CHUNK_BYTES", default=64 << 20, least=1)
MOBILITY_CHUNK_ROWS = env.whole("MOBILITY_CHUNK_ROWS", default=400_000, least=1)

# --- maintenance (mobility.operations): what is too little, too late, too old ----------------
MOBILITY_DISK_FREE_GB = env.number("MOBILITY_DISK_FREE_GB", default=10.0, least=0.0)
MOBILITY_WAITING_MAX_S = env.whole("MOBILITY_WAITING_MAX_S", default=3600, least=1)
MOBILITY_FEED_GRACE_H = env.whole("MOBILITY_FEED_GRACE_H", default=24, least=0)
MOBILITY_DAY_OPEN_DAYS = env.whole("MOBILITY_DAY_OPEN_DAYS", default=3, least=0)
MOBILITY_KEY_DUE_DAYS = env.whole("MOBILITY_KEY_DUE_DAYS", default=14, least=0)
MOBILITY_BACKUP_DAYS = env.whole("MOBILITY_BACKUP_DAYS", default=2, least=1)
MOBILITY_ESCROW = env.choice("MOBILITY_ESCROW", default="expected", among=("expected", "none"))

# --- plans ------------------------------------------------------------------------------------
# Whether what may weaken the protection needs the approval of someone who wrote nothing of it.
MOBILITY_SECOND_PERSON = env.bool("MOBILITY_SECOND_PERSON", default=True)
# For how long an account counts as belonging to anyone who created or changed it
# (reports/accounts/second_person.py).
MOBILITY_SECOND_PERSON_DAYS = env.whole("MOBILITY_SECOND_PERSON_DAYS", default=30, least=1)

# --- ways in ----------------------------------------------------------------------------------
MOBILITY_MAX_UPLOAD_BYTES = env.whole("MOBILITY_MAX_UPLOAD_BYTES", default=200_000_000_000, least=1)
MOBILITY_UPLOAD_EXPIRES_S = env.whole("MOBILITY_UPLOAD_EXPIRES_S", default=24 * 3600, least=1)
MOBILITY_STAGING_RESERVE_BYTES = env.whole("MOBILITY_STAGING_RESERVE_BYTES", default=1_000_000_000, least=0)
MOBILITY_MAX_WAITING_BATCHES = env.whole("MOBILITY_MAX_WAITING_BATCHES", default=1000, least=1)
MOBILITY_MAX_WAITING_BYTES = env.whole("MOBILITY_MAX_WAITING_BYTES", default=1_000_000_000_000, least=1)
MOBILITY_WATCH_DIR = env.str("MOBILITY_WATCH_DIR", default="")
MOBILITY_WATCH_SETTLE_S = env.whole("MOBILITY_WATCH_SETTLE_S", default=10, least=0)

# Country whose public holidays forecasts count as Sundays (two letters, or "timezone": of the study's).
MOBILITY_HOLIDAYS = env.str("MOBILITY_HOLIDAYS", default="")

# --- ways out ---------------------------------------------------------------------------------
MOBILITY_SHARE_LOG_DAYS = env.whole("MOBILITY_SHARE_LOG_DAYS", default=400, least=1)

# --- data retention, in days (docs/retention.md) -------------------------------------------------
MOBILITY_KEEP_HISTORY_DAYS = env.whole("MOBILITY_KEEP_HISTORY_DAYS", default=400, least=1)
MOBILITY_KEEP_DETAIL_DAYS = env.whole("MOBILITY_KEEP_DETAIL_DAYS", default=90, least=1)
MOBILITY_CLOSE_AT_KEY_UNTIL = env.bool("MOBILITY_CLOSE_AT_KEY_UNTIL", default=False)

# --- backups ----------------------------------------------------------------------------------
MOBILITY_BACKUP_DIR = Path(env.str("MOBILITY_BACKUP_DIR", default=str(PATHS.backups)))
MOBILITY_BACKUP_KEEP_DAYS = env.whole("MOBILITY_BACKUP_KEEP_DAYS", default=35, least=0)

# --- staging: a folder, or a bucket that all hosts reach -----------------------------------------


def _staging() -> dict[str, object]:
    """A bucket if one is named, else MOBILITY_STAGING_DIR."""
    bucket = env.str("MOBILITY_STAGING_S3_BUCKET", default="")
    if not bucket:
        return {"BACKEND": "mobility.batches.storages.folder.StagingFolder"}
    options = {
        "bucket_name": bucket,
        "endpoint_url": env.str("MOBILITY_STAGING_S3_ENDPOINT_URL", default="") or None,
        "region_name": env.str("MOBILITY_STAGING_S3_REGION", default="") or None,
        "location": env.str("MOBILITY_STAGING_S3_PREFIX", default=""),
        "access_key": env.str("MOBILITY_STAGING_S3_ACCESS_KEY", default="") or None,
        "secret_key": env.str("MOBILITY_STAGING_S3_SECRET_KEY", default="") or None,
    }
    return {"BACKEND": "mobility.batches.storages.bucket.StagingBucket", "OPTIONS": options}


# --- sign-in ----------------------------------------------------------------------------------
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = env.whole("MOBILITY_SESSION_HOURS", default=12, least=1) * 3600
MOBILITY_SECOND_FACTOR = env.choice(
    "MOBILITY_SECOND_FACTOR", default="optional", among=("optional", "required")
)
CACHES = {"default": {"BACKEND": "mobility.signin.cache.JsonCache"}}  # counts of guesses, and used codes
ALLAUTH_TRUSTED_PROXY_COUNT = env.whole("MOBILITY_TRUSTED_PROXIES", default=0, least=0)
ALLAUTH_RATE_LIMIT_IPV6_PREFIX = 64  # one household or host has all addresses of such a network
ACCOUNT_ADAPTER = "mobility.signin.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "mobility.signin.forms.SignInForm",
    "reauthenticate": "mobility.signin.forms.ConfirmForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]  # of forms that have no address
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True  # for SESSION_COOKIE_AGE
ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
ACCOUNT_RATE_LIMITS = {
    "login": "60/m/ip",
    "login_failed": "10/15m/key",  # the key is the account, or its second factor
    "sign_in_address": "50/15m/ip",  # offices share an address
    "reauthenticate": "10/m/user",
    "shared_address": "60/m/ip",  # share links: anyone who reads them has no account
    "shared_link": "300/m/key",
    "tables": "20/m/user",  # reading tables takes seconds
}
MOBILITY_OIDC_ISSUER = env.str("MOBILITY_OIDC_ISSUER", default="")
MOBILITY_OIDC_NAME = env.str("MOBILITY_OIDC_NAME", default="") or "OpenID"
MOBILITY_OIDC_CLIENT_ID = env.str("MOBILITY_OIDC_CLIENT_ID", default="")
MOBILITY_OIDC_CLIENT_SECRET = env.str("MOBILITY_OIDC_CLIENT_SECRET", default="")
MOBILITY_OIDC_SCOPES = env.list("MOBILITY_OIDC_SCOPES", default=[])
MOBILITY_OIDC_GROUPS_CLAIM = env.str("MOBILITY_OIDC_GROUPS_CLAIM", default="")
MOBILITY_OIDC_GROUPS = env.dict("MOBILITY_OIDC_GROUPS", default={})
SOCIALACCOUNT_ADAPTER = "mobility.signin.adapters.SocialAdapter"
MFA_ADAPTER = "mobility.signin.adapters.SecondFactorAdapter"
MFA_FORMS = {
    "authenticate": "mobility.signin.forms.SecondFactorForm",
    "reauthenticate": "mobility.signin.forms.ConfirmCodeForm",
    "activate_totp": "mobility.signin.forms.NewAppForm",
}
MFA_SUPPORTED_TYPES = ["recovery_codes", "totp", "webauthn"]
MFA_TOTP_ISSUER = "Mobility reports"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# --- language and time ------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("fr", "Français")]  # each by its own name
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600  # a choice lasts longer than a session
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
USE_TZ = True
TIME_ZONE = "UTC"

# --- static files and headers -----------------------------------------------------------------
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(env.str("MOBILITY_STATIC_DIR", default=str(PATHS.static_root)))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staging": _staging(),
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
HTTPS = env.bool("HTTPS", default=False)  # set behind a proxy that terminates TLS
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
CSRF_COOKIE_HTTPONLY = True  # scripts take the token from a form
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
# To preload a whole domain in browsers is for who owns the domain to decide, not for one host below it.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"  # no other host can set them
    ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https"

# Uploads never reach the framework's own handlers (they would spool to a temporary file).
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000

# --- logs, alerts and metrics -----------------------------------------------------------------
LOG_FORMAT = env.choice("LOG_FORMAT", default="line", among=("line", "json"))
LOG_REQUESTS = env.bool("LOG_REQUESTS", default=False)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "mobility.base.logs.QuietFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
        "json": {"()": "mobility.base.logs.JsonFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        "django.request": {"level": "ERROR"},
        # In processes that answer: their own handlers would write addresses; those of share links are secret.
        "gunicorn.error": {"handlers": ["console"], "propagate": False},
        "gunicorn.access": {"handlers": ["console"], "propagate": False},
    },
}
MOBILITY_METRICS_TOKEN = env.str("MOBILITY_METRICS_TOKEN", default="")
SITE_URL = env.str("MOBILITY_SITE_URL", default="")
MOBILITY_SITE_URL = SITE_URL.rstrip("/")  # in messages
MOBILITY_ALERT_LEVEL = env.choice(
    "MOBILITY_ALERT_LEVEL", default="warning", among=("note", "warning", "error")
)
MOBILITY_ALERT_EVERY_S = env.whole("MOBILITY_ALERT_EVERY_S", default=60, least=1)
MOBILITY_ALERT_SETTLE_S = env.whole("MOBILITY_ALERT_SETTLE_S", default=600, least=0)
MOBILITY_ALERT_REPEAT_H = env.whole("MOBILITY_ALERT_REPEAT_H", default=24, least=1)
MOBILITY_ALERT_EMAIL_TO = env.list("MOBILITY_ALERT_EMAIL_TO", default=[])
DEFAULT_FROM_EMAIL = env.str("MOBILITY_ALERT_EMAIL_FROM", default="mobility@localhost")
if env.str("MOBILITY_ALERT_EMAIL_URL", default=""):
    vars().update(env.email_url("MOBILITY_ALERT_EMAIL_URL"))  # EMAIL_HOST and its like
EMAIL_TIMEOUT = 10
MOBILITY_DIGEST_DOMAINS = env.list("MOBILITY_DIGEST_DOMAINS", default=[])
MOBILITY_ALERT_WEBHOOK_URL = env.str("MOBILITY_ALERT_WEBHOOK_URL", default="")
MOBILITY_ALERT_WEBHOOK_SECRET = env.str("MOBILITY_ALERT_WEBHOOK_SECRET", default="")
MOBILITY_ALERT_WEBHOOK_CA_FILE = env.str("MOBILITY_ALERT_WEBHOOK_CA_FILE", default="")
