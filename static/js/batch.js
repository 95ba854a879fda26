// The page of a batch: says changes of state aloud and in the title, once each.
const status = document.getElementById("batch-status");
const title = document.title;
let said = "";

function say() {
  const state = document.querySelector("#state-title")?.textContent.trim() ?? "";
  if (state === said) return;
  if (said) status.textContent = `${state}. ${document.getElementById("state-sentence").textContent.trim()}`;
  said = state;
  document.title = `${state} · ${title}`;
}

document.addEventListener("htmx:beforeSwap", (event) => {
  // Signed out meanwhile: the answer is the sign-in page, which has no business inside this one.
  const { xhr, requestConfig } = event.detail;
  if (xhr.responseURL && new URL(xhr.responseURL).pathname !== new URL(requestConfig.path, location).pathname) {
    event.detail.shouldSwap = false;
    location.reload();
  }
});
document.addEventListener("htmx:afterSettle", say);
say();
