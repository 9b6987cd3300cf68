import { notes } from "./notes.js";

const form = document.querySelector("#form");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  notes.push(form.querySelector("sl-input").value);
});
document.title = `Field notes (${notes.length})`;
