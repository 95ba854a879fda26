// What a reader has unfolded stays unfolded when the page replaces it: <details id="..." data-stays-open>.
const open = new Set();
document.addEventListener("htmx:beforeSwap", () => {
  open.clear();
  for (const each of document.querySelectorAll("details[data-stays-open][open]")) open.add(each.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
});
