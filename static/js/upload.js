// Sends the chosen file as the raw body of a PUT (a form would make the server spool it) and shows how far it is.
const form = document.getElementById("upload");
const texts = JSON.parse(document.getElementById("upload-texts").textContent);
const part = (name) => document.getElementById(`upload-${name}`);
const megabytes = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1, minimumFractionDigits: 1 });
let request = null;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const inMegabytes = (bytes) => megabytes.format(bytes / 1e6);

function showError(text) {
  part("error").textContent = text;
  part("error").hidden = false;
}

function setBusy(busy) {
  part("send").disabled = busy;
  part("file").disabled = busy;
  part("more").disabled = busy;
  part("cancel").hidden = !busy;
  part("progress").hidden = !busy;
}

function duration(seconds) {
  return seconds < 90
    ? fill(texts.seconds, { n: Math.max(1, Math.ceil(seconds)) })
    : fill(texts.minutes, { n: Math.ceil(seconds / 60) });
}

function showProgress(sent, total, startedAt) {
  const percent = Math.floor((100 * sent) / total);
  const elapsed = (performance.now() - startedAt) / 1000;
  const speed = sent / elapsed;
  const values = { sent: inMegabytes(sent), total: inMegabytes(total), percent, speed: inMegabytes(speed), left: duration((total - sent) / speed) };
  part("bar").value = percent;
  part("numbers").textContent = fill(sent < total ? texts.progress : texts.sealing, values);
  // Screen readers hear every quarter, not every packet.
  const quarter = fill(texts.quarter, { percent: percent - (percent % 25) });
  if (part("status").textContent !== quarter) part("status").textContent = quarter;
}

function warnBeforeLeaving(event) {
  event.preventDefault();
}

function end() {
  request = null;
  removeEventListener("beforeunload", warnBeforeLeaving);
  setBusy(false);
}

function answered() {
  const { status, response } = request;
  end();
  if (status === 201) {
    location.assign(response.url);
    return;
  }
  showError(response?.error ?? fill(texts.refused, { status }));
}

function send(file) {
  const address = new URL(form.dataset.url, location);
  address.searchParams.set("filename", file.name);
  if (part("more").checked) address.searchParams.set("more_to_come", "1");
  const startedAt = performance.now();
  request = new XMLHttpRequest();
  request.responseType = "json";
  request.upload.addEventListener("progress", (event) => showProgress(event.loaded, file.size, startedAt));
  request.addEventListener("load", answered);
  request.addEventListener("error", () => { end(); showError(texts.broken); });
  request.addEventListener("abort", () => { end(); showError(texts.cancelled); });
  request.open("PUT", address);
  request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  addEventListener("beforeunload", warnBeforeLeaving);
  setBusy(true);
  request.send(file);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (request) return;
  part("error").hidden = true;
  const file = part("file").files[0];
  if (!file) showError(texts.none);
  else if (file.size === 0) showError(texts.empty);
  else send(file);
});
part("cancel").addEventListener("click", () => request?.abort());
part("send").disabled = false;
