// The form of a profile: every choice asks the server how the first rows are read now. Only they are sent.
const PATIENCE_MS = 300;
const form = document.getElementById("profile");
const file = document.getElementById("profile-file");
const mapping = document.getElementById("mapping");
let timer = 0;
let edits = 0; // what the person has typed or chosen so far
let editsSent = 0;
let isSaving = false;

form.addEventListener("input", () => { edits += 1; });
form.addEventListener("change", () => {
  clearTimeout(timer);
  timer = setTimeout(() => { if (!isSaving) window.htmx.trigger(form, "look"); }, PATIENCE_MS);
});
form.addEventListener("submit", () => clearTimeout(timer));
file.addEventListener("change", () => {
  if (!form.elements.copy) mapping.replaceChildren(); // choices for another file mean nothing here; a copy's stay
});

// The upload form that opened this page may have a chosen file.
addEventListener("message", ({ origin, data, source }) => {
  if (origin !== location.origin || source !== window.opener || !(data instanceof File) || file.files.length) return;
  const chosen = new DataTransfer();
  chosen.items.add(data);
  file.files = chosen.files;
  file.dispatchEvent(new Event("change", { bubbles: true }));
});
window.opener?.postMessage("chosen-file", location.origin);

document.addEventListener("htmx:configRequest", (event) => {
  editsSent = edits;
  isSaving = event.detail.formData.get("action") === "save";
  const chosen = file.files[0];
  if (!chosen) return;
  event.detail.formData.set("sample", chosen.slice(0, Number(form.dataset.sampleBytes)), "sample");
  event.detail.formData.set("size", String(chosen.size));
});

// An answer must not overwrite what was typed while it was on its way: the next change asks again.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isSaving && edits !== editsSent) event.detail.shouldSwap = false;
});
document.addEventListener("htmx:afterRequest", () => { isSaving = false; });
document.addEventListener("htmx:afterSettle", () => document.getElementById("profile-problems")?.focus());

function showBroken() {
  const message = document.createElement("p");
  message.className = "message message--error";
  message.textContent = form.dataset.broken;
  mapping.prepend(message);
}
document.addEventListener("htmx:sendError", showBroken);
document.addEventListener("htmx:responseError", showBroken);
