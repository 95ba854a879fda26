// The page of a new study: form and text follow each other. The server merges both and stores nothing; files
// stay in the browser, and are sent only where they are needed. The text survives a way to the simulator.
const PATIENCE_MS = { change: 150, text: 700 };
const form = document.getElementById("create");
const steps = document.getElementById("steps");
const outcome = document.getElementById("outcome");
const kept = `new-study:${form.dataset.like}`;
const text = () => document.getElementById("study-text");
let timer = 0;
const actions = []; // of the next requests; none = only bring form and text together
let sent = "sync"; // action of the request that is on its way
let edits = 0; // what the person has typed or chosen so far
let editsSent = 0;
let editsShown = 0; // what the page has an answer to
let isPressing = false; // a press on a button that is replaced meanwhile would do nothing
let open = []; // what was unfolded
let map = null; // of the files, which not every answer draws again

function sync(wait, wanted = "sync") {
  clearTimeout(timer);
  if (wanted !== "sync" && !actions.includes(wanted)) actions.push(wanted);
  timer = setTimeout(() => window.htmx.trigger(form, "sync"), wait);
}

form.addEventListener("input", ({ target }) => {
  edits += 1;
  if (target === text()) sync(PATIENCE_MS.text);
});
form.addEventListener("change", ({ target }) => {
  if (target.dataset.picks) pick(target);
  if (target.id === "sample-file") sync(0, "sample");
  else if (target.dataset.names) name(target);
  else if (target.type !== "file") sync(PATIENCE_MS.change);
});
// Noted here: an answer may replace the button before its request is sent.
form.addEventListener("submit", ({ submitter }) => {
  clearTimeout(timer);
  if (submitter && submitter.value !== "sync") actions.unshift(submitter.value);
}, true);

document.addEventListener("pointerdown", ({ target }) => { isPressing = Boolean(target.closest("button")); });
["pointerup", "pointercancel"].forEach((each) => document.addEventListener(each, () => { isPressing = false; }));

// A value of the sample becomes a category, or is none any more.
function pick({ dataset, value, checked }) {
  const list = document.getElementById(dataset.picks);
  const others = list.value.split("\n").filter((line) => line.trim() && line.trim() !== value);
  list.value = (checked ? [...others, value] : others).join("\n");
}

// The text names the chosen file.
function name({ dataset, files }) {
  const field = form.elements[dataset.names];
  if (files[0] && field) field.value = files[0].name;
  edits += 1;
  sync(0, "map");
}

document.getElementById("study-file").addEventListener("change", async ({ target }) => {
  const file = target.files[0];
  if (!file) return;
  text().value = await file.text();
  document.getElementById("study-name").value = file.name;
  target.value = ""; // its text stands in the page now, where it can be edited
  edits += 1;
  sync(0);
});
document.querySelector("[data-blank]").addEventListener("click", () => sessionStorage.removeItem("new-study:"));

document.addEventListener("htmx:configRequest", (event) => {
  const { formData } = event.detail;
  const wanted = actions.shift() ?? "sync";
  if (wanted === "sync" && edits === editsShown) {
    event.preventDefault(); // nothing new
    return;
  }
  editsSent = edits;
  sent = wanted;
  formData.set("do", sent);
  formData.delete("study_file");
  if (!["create", "map", "sample"].includes(sent)) ["cells", "zones", "layers"].forEach((each) => formData.delete(each));
  const sample = document.getElementById("sample-file")?.files[0];
  if (!sample) return;
  formData.set("sample", sample.slice(0, Number(form.dataset.sampleBytes)), "sample");
  formData.set("size", String(sample.size));
});

// An answer must not overwrite what was typed while it was on its way: the next one has both.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (edits !== editsSent || isPressing) {
    detail.shouldSwap = false;
    editsShown = -1;
    if (!["create", "sync"].includes(sent)) actions.unshift(sent);
    sync(PATIENCE_MS.change);
    return;
  }
  editsShown = editsSent;
  open = [...steps.querySelectorAll("details[open]")].map((each) => each.id);
  // Taken out by hand: what swaps nodes would copy their styles, which the content policy forbids.
  if (detail.target === steps) map = document.getElementById("area-map");
  map?.remove();
});
document.addEventListener("htmx:afterSwap", () => {
  const place = document.getElementById("area-map");
  if (map && place?.hasAttribute("data-keep")) place.replaceWith(map);
  map = null;
});
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.target !== steps && detail.target !== outcome) return;
  open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
  const added = document.getElementById("new-row")?.dataset.new;
  if (added) document.getElementById(added)?.querySelector("input:not([type=hidden]), select")?.focus();
  if (sent === "create") outcome.querySelector("[tabindex]")?.focus();
  sessionStorage.setItem(kept, text().value);
  if (actions.length) sync(0);
});
document.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
  if (detail.xhr.getResponseHeader("HX-Redirect")) sessionStorage.removeItem(kept);
});

function showBroken() {
  const message = document.createElement("p");
  message.className = "message message--error";
  message.textContent = form.dataset.broken;
  outcome.replaceChildren(message);
}
document.addEventListener("htmx:sendError", showBroken);
document.addEventListener("htmx:responseError", showBroken);

function isChanged(field) {
  if (field.type === "file") return field.files.length > 0;
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  return field.defaultValue !== undefined && field.value !== field.defaultValue;
}

// What was begun in this tab goes on; values that the simulator brings are merged into it. What was typed or chosen
// before this script ran had no listeners yet.
const begun = sessionStorage.getItem(kept);
if (begun && begun !== text().value) text().value = begun;
[...form.elements].filter(isChanged).forEach((each) => {
  edits += 1;
  sync(0);
  each.dispatchEvent(new Event("change", { bubbles: true }));
});
