// A file that is ready is fetched at once; the page stays where it is.
document.addEventListener("htmx:afterSwap", () => {
  document.querySelector("[data-download]")?.click();
});
