// Sliders of the simulator. The number beside a slider is what is sent; the slider only writes into it.

const STEPS = 1000;

function valueAt(slider) {
  const { low, high, scale } = slider.dataset;
  const [from, to, share] = [Number(low), Number(high), Number(slider.value) / STEPS];
  return scale === "log" ? from * (to / from) ** share : from + (to - from) * share;
}

function placeOf(slider, value) {
  const [from, to] = [Number(slider.dataset.low), Number(slider.dataset.high)];
  const held = Math.min(Math.max(value, from), to);
  const share =
    slider.dataset.scale === "log" ? Math.log(held / from) / Math.log(to / from) : (held - from) / (to - from);
  return Math.round(share * STEPS);
}

// The mechanism that the settings recommend stands outside the folded ones.
document.addEventListener("htmx:oobAfterSwap", () => {
  const name = document.querySelector("[data-mechanism]").dataset.mechanism;
  const first = document.querySelector("[data-recommended]");
  const others = first.nextElementSibling;
  const found = document.querySelector(`.mechanisms input[value="${name}"]`).closest("div");
  if (first.contains(found)) return;
  others.append(...first.children);
  first.append(found);
  if (others.querySelector(":checked")) others.open = true;
});

// Two digits, or whole numbers where nothing else is taken.
function rounded(value, digits) {
  if (digits === "0") return value < 100 ? String(Math.round(value)) : String(Number(value.toPrecision(2)));
  return String(Number(value.toPrecision(2)));
}

function follow(slider, number) {
  slider.value = String(placeOf(slider, Number(number.value)));
  slider.setAttribute("aria-valuetext", number.value);
}

for (const slider of document.querySelectorAll("input.slider")) {
  const number = document.getElementById(slider.dataset.for);
  follow(slider, number);
  slider.hidden = false;
  slider.addEventListener("input", () => {
    number.value = rounded(valueAt(slider), slider.dataset.digits);
    slider.setAttribute("aria-valuetext", number.value);
  });
  number.addEventListener("input", () => follow(slider, number));
}
