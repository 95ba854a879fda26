// Buttons that copy a text: shown only where the browser lets a page write to the clipboard.
const SHOWN_MS = 2000;

function ready(button) {
  const status = button.nextElementSibling;
  const text = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = status.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = text; status.textContent = ""; }, SHOWN_MS);
  });
}

if (navigator.clipboard) document.querySelectorAll("[data-copies]").forEach(ready);
