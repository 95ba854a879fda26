// Sends the chosen file in a way that survives a lost connection (tus), and shows how far it is.
// What has arrived is known to the server alone. This browser keeps the time stamp of the file per upload, nothing
// else, so that a file that was changed meanwhile is not taken for the rest of the old one.
const { tus } = window;
const form = document.getElementById("upload");
const { texts, unfinished } = JSON.parse(document.getElementById("upload-data").textContent);
const part = (name) => document.getElementById(`upload-${name}`);
const megabytes = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const DELAYS_MS = [0, 1000, 2000, 5000, 10000, ...Array(60).fill(15000)];
let upload = null;
let isPaused = false;
let pace = { sent: 0, at: 0 };

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const inMegabytes = (bytes) => megabytes.format(bytes / 1e6);
const stampKey = (url) => `upload-file-changed-at:${new URL(url, location).pathname}`;

function say(name, text) {
  part(name).textContent = text;
  part(name).hidden = !text;
}

function setBusy(busy) {
  for (const name of ["send", "file", "profile", "more", "validate"]) part(name).disabled = busy;
  for (const name of ["cancel", "pause", "progress"]) part(name).hidden = !busy;
  isPaused = false;
  part("pause").textContent = texts.pause;
}

function duration(seconds) {
  return seconds < 90
    ? fill(texts.seconds, { n: Math.max(1, Math.ceil(seconds)) })
    : fill(texts.minutes, { n: Math.ceil(seconds / 60) });
}

function showProgress(sent, total) {
  say("note", "");
  const now = performance.now();
  // Speed counts from where this connection began: earlier bytes were sent at another time.
  if (!pace.at || sent < pace.sent) pace = { sent, at: now };
  const speed = (sent - pace.sent) / Math.max((now - pace.at) / 1000, 0.001);
  const percent = Math.floor((100 * sent) / total);
  const left = speed ? duration((total - sent) / speed) : "…";
  part("bar").value = percent;
  part("numbers").textContent = fill(sent < total ? texts.progress : texts.sealing, {
    sent: inMegabytes(sent), total: inMegabytes(total), percent, speed: inMegabytes(speed), left,
  });
  // Screen readers hear every quarter, not every packet.
  const quarter = fill(texts.quarter, { percent: percent - (percent % 25) });
  if (part("status").textContent !== quarter) part("status").textContent = quarter;
}

function warnBeforeLeaving(event) {
  event.preventDefault();
}

function end() {
  if (upload?.url) localStorage.removeItem(stampKey(upload.url));
  upload = null;
  removeEventListener("beforeunload", warnBeforeLeaving);
  setBusy(false);
}

function pause(text) {
  isPaused = true;
  part("pause").textContent = texts.resume;
  say("note", text);
}

// What our server says is wrong; empty of a page that is not an answer of ours.
function reasonOf(error) {
  try {
    return JSON.parse(error.originalResponse.getBody()).detail ?? "";
  } catch {
    return "";
  }
}

function isPassing(error) {
  const status = error.originalResponse?.getStatus() ?? 0;
  const passing = status === 0 || status === 409 || status === 423 || (status >= 500 && status !== 507);
  if (passing) say("note", (status === 503 && reasonOf(error)) || texts.waiting);
  return passing;
}

function failed(error) {
  const status = error.originalResponse?.getStatus() ?? 0;
  if (status === 0 || status === 409 || status === 423 || status === 503) {
    pause(texts.broken);
    return;
  }
  const reason = reasonOf(error) || fill(texts.refused, { status });
  if (status === 507 && upload?.url) { // what has arrived stays: it goes on when there is room again
    pause(reason);
    return;
  }
  const isSignedOut = status === 401 || status === 403;
  if (isSignedOut) upload.url = null; // what this browser knows of the file is needed after signing in
  end();
  say("error", isSignedOut ? texts.signed_out : reason);
}

function succeeded() {
  const { url } = upload;
  end();
  location.assign(url);
}

function restingUpload(file) {
  return unfinished.find(({ url, filename, total }) =>
    filename === file.name && total === file.size && localStorage.getItem(stampKey(url)) === String(file.lastModified));
}

function start(file) {
  const metadata = { filename: file.name, profile: part("profile").value };
  if (part("more").checked) metadata.more_to_come = "1";
  if (part("validate").checked) metadata.validate_only = "1";
  upload = new tus.Upload(file, {
    endpoint: form.dataset.url,
    uploadUrl: restingUpload(file)?.url ?? null,
    metadata,
    headers: { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value },
    retryDelays: DELAYS_MS,
    storeFingerprintForResuming: false,
    onShouldRetry: isPassing,
    onUploadUrlAvailable: () => localStorage.setItem(stampKey(upload.url), String(file.lastModified)),
    onProgress: showProgress,
    onSuccess: succeeded,
    onError: failed,
  });
  addEventListener("beforeunload", warnBeforeLeaving);
  setBusy(true);
  pace = { sent: 0, at: 0 };
  upload.start();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (upload) return;
  say("error", "");
  const file = part("file").files[0];
  if (!file) say("error", texts.none);
  else if (file.size === 0) say("error", texts.empty);
  else start(file);
});

part("file").addEventListener("change", () => {
  const file = part("file").files[0];
  const known = file && restingUpload(file);
  say("note", known ? fill(texts.known, { received: inMegabytes(known.received), total: inMegabytes(known.total) }) : "");
  for (const name of ["profile", "more", "validate"]) part(name).disabled = Boolean(known);
  if (known) {
    part("profile").value = known.profile;
    showProfile();
    part("more").checked = known.more_to_come;
    part("validate").checked = known.validate_only;
    showAction();
  }
});

part("pause").addEventListener("click", async () => {
  if (isPaused) {
    isPaused = false;
    part("pause").textContent = texts.pause;
    say("note", "");
    pace = { sent: 0, at: 0 };
    upload.start();
  } else {
    await upload.abort();
    pause(texts.paused);
  }
});

part("cancel").addEventListener("click", async () => {
  const cancelled = upload;
  part("cancel").disabled = true;
  try {
    await cancelled.abort(true);
    end();
    say("note", texts.cancelled);
  } catch (error) {
    failed(error);
  }
  part("cancel").disabled = false;
});
// Which profile the file is read with, its columns, and the page that describes it.
function showProfile() {
  const chosen = part("profile").selectedOptions[0];
  part("profile-link").textContent = chosen.value;
  part("profile-link").href = chosen.dataset.address;
  const columns = JSON.parse(chosen.dataset.columns);
  part("columns").textContent = columns.join(", ");
  part("expected").hidden = !columns.length;
}

// The header of a chosen text file next to the columns of the profile; it is read here, and nothing is sent.
// Quoted names are not taken apart: of such a header nothing is said.
const HEADER_BYTES = 65536;
const DELIMITERS = [",", ";", "\t", "|"];
const PACKED = [[0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd], [0x50, 0x41, 0x52, 0x31]]; // gzip, zstd, Parquet

function decoded(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

function missingColumns(bytes, wanted) {
  const end = bytes.findIndex((byte) => byte === 10 || byte === 13);
  if (end < 0 || bytes.includes(0) || PACKED.some((magic) => magic.every((byte, place) => bytes[place] === byte))) return [];
  const header = decoded(bytes.slice(0, end));
  if (header.includes('"') || wanted.some((name) => DELIMITERS.some((delimiter) => name.includes(delimiter)))) return [];
  const missing = DELIMITERS.map((delimiter) => {
    const names = header.split(delimiter).map((name) => name.trim());
    return wanted.filter((name) => !names.includes(name));
  });
  return missing.reduce((least, each) => (each.length < least.length ? each : least));
}

async function checkHeader() {
  const file = part("file").files[0];
  part("new-tab").hidden = !file;
  const wanted = part("profile").selectedOptions[0].dataset.columns;
  const bytes = file && new Uint8Array(await file.slice(0, HEADER_BYTES).arrayBuffer());
  if (part("file").files[0] !== file || part("profile").selectedOptions[0].dataset.columns !== wanted) return;
  const missing = file ? missingColumns(bytes, JSON.parse(wanted)) : [];
  say("misfit", missing.length ? fill(texts.columns, { columns: missing.join(", ") }) : "");
}
part("file").addEventListener("change", checkHeader);

// The page of a new profile opens in a new tab and asks for the chosen file, which a link cannot carry.
part("new-profile").addEventListener("click", (event) => {
  if (part("file").files[0] && window.open(event.currentTarget.href)) event.preventDefault();
});
addEventListener("message", ({ origin, data, source }) => {
  const file = part("file").files[0];
  if (origin === location.origin && data === "chosen-file" && file) source.postMessage(file, origin);
});

part("profile").addEventListener("change", () => {
  showProfile();
  checkHeader();
});

function showAction() {
  part("send").textContent = part("validate").checked ? texts.check : texts.upload;
}
part("validate").addEventListener("change", showAction);

// A link may have chosen already: ?profile=NAME&validate_only=1
const asked = new URLSearchParams(location.search);
const isKnown = [...part("profile").options].some((option) => option.value === asked.get("profile"));
if (isKnown) part("profile").value = asked.get("profile");
showProfile();
part("validate").checked = asked.get("validate_only") === "1";
showAction();
part("send").disabled = false;
