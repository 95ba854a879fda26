// Menus close when one presses Escape or clicks elsewhere; without this script a second click closes them.

const open = () => [...document.querySelectorAll("details.menu[open]")];

document.addEventListener("click", (event) => {
  open().filter((menu) => !menu.contains(event.target)).forEach((menu) => { menu.open = false; });
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  open().forEach((menu) => {
    menu.open = false;
    menu.querySelector("summary").focus();
  });
});
