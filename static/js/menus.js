// Menus close when one presses Escape or clicks elsewhere; without this script a second click closes them.

const open = () => [...document.querySelectorAll("details.menu[open]")];

document.addEventListener("click", (event) => {
  open().filter((menu) => !menu.contains(event.target)).forEach((menu) => { menu.open = false; });
});
// On a wide screen the header shows the site menu in its place, which an open one would leave empty.
matchMedia("(max-width: 40rem)").addEventListener("change", () => {
  document.querySelector("#site-menu:popover-open")?.hidePopover();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  open().forEach((menu) => {
    menu.open = false;
    menu.querySelector("summary").focus();
  });
});
// In a row of tabs that scrolls, the page's own is in sight.
document.querySelectorAll(".pages [aria-current], .tabs [aria-current]").forEach((tab) => {
  const tabs = tab.closest("nav");
  tabs.scrollLeft = Math.max(0, tab.getBoundingClientRect().right - tabs.getBoundingClientRect().right);
});
