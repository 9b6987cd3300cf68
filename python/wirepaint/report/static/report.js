"use strict";
// What makes the report's tables and figures answer to the reader. Without it everything is shown.

const tip = document.getElementById("tip");

/** Shows elements, or one line of text, near a point of the window. */
function showTip(content, x, y) {
  tip.replaceChildren(...[content].flat());
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 16 + width > window.innerWidth ? x - width - 12 : x + 16;
  const top = y + 18 + height > window.innerHeight ? y - height - 12 : y + 18;
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(top, 4)}px`;
}

function hideTip() {
  tip.hidden = true;
}

/** A button that folds the rows of single pages away. */
function startFold(button) {
  const body = document.getElementById(button.getAttribute("aria-controls"));
  const set = (open) => {
    body.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "hide pages" : "page by page";
  };
  button.hidden = false;
  button.addEventListener("click", () => set(body.hidden));
  set(false);
}

/** Keeps the rows of a table that hold the text and the verdict asked for. */
function startFilter(form) {
  const table = document.getElementById(form.dataset.table);
  const [text, verdict] = [form.querySelector("input"), form.querySelector("select")];
  const count = form.querySelector("output");
  const apply = () => {
    const wanted = text.value.trim().toLowerCase();
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted) || (verdict.value !== "" && row.dataset.verdict !== verdict.value);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${table.tBodies[0].rows.length} runs`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

/** Points of a figure tell their value. */
function startFigure(box) {
  box.addEventListener("pointermove", (event) => {
    const label = event.target.closest?.("path[aria-label]")?.getAttribute("aria-label");
    if (label) showTip(label, event.clientX, event.clientY);
    else hideTip();
  });
  box.addEventListener("pointerleave", hideTip);
}

/** Paper shows what is folded on the screen. */
function startPrinting() {
  const folded = [...document.querySelectorAll("details:not([open])")];
  window.addEventListener("beforeprint", () => folded.forEach((one) => (one.dataset.was = String(one.open), one.open = true)));
  window.addEventListener("afterprint", () => folded.forEach((one) => (one.open = one.dataset.was === "true")));
}

startPrinting();
document.querySelectorAll("[data-chart]").forEach(startChart);
const packedValues = document.getElementById("values");
if (packedValues) unpack(packedValues.textContent).then((data) => new Explorer(document.getElementById("explorer"), data));
document.querySelectorAll("button.more").forEach(startFold);
document.querySelectorAll("form[data-table]").forEach(startFilter);
document.querySelectorAll(".plot-box").forEach(startFigure);
const boardRoot = document.getElementById("board");
if (boardRoot) new Board(boardRoot).start();
