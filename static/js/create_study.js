// The form that creates a study: the page stays, so that the chosen files stay too.
const form = document.getElementById("create");
const outcome = document.getElementById("outcome");

document.addEventListener("htmx:afterSettle", () => {
  // What was sent stands in the text now, where it can be corrected; the file would replace it again.
  if (document.getElementById("study-text")) document.getElementById("study-file").value = "";
  outcome.scrollIntoView({ block: "start" });
});

function showBroken() {
  const message = document.createElement("p");
  message.className = "message message--error";
  message.textContent = form.dataset.broken;
  outcome.replaceChildren(message);
}
document.addEventListener("htmx:sendError", showBroken);
document.addEventListener("htmx:responseError", showBroken);
