"use strict";
// Sort a table by the column whose head is pressed; unknown values stay at the end.
for (const head of document.querySelectorAll("th")) {
  head.firstElementChild.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending";
    const key = (row) => {
      const cell = row.cells[head.cellIndex];
      return "k" in cell.dataset ? Number(cell.dataset.k)
        : head.classList.contains("n") ? null : cell.textContent;
    };
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      const sign = typeof x === "number" && typeof y === "number"
        ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
      return down ? -sign : sign;
    };
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...[...body.rows].sort(order));
  });
}
// Say so where a table goes on beyond the edge.
const tell = () => {
  for (const box of document.querySelectorAll(".scroll")) {
    box.nextElementSibling.hidden = box.scrollWidth <= box.clientWidth + 1;
  }
};
addEventListener("resize", tell);
tell();
// Show only the rows that hold all words.
for (const input of document.querySelectorAll("input[data-for]")) {
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...document.getElementById(input.dataset.for).tBodies[0].rows];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const left = rows.filter((row) => !row.hidden).length;
    input.nextElementSibling.value = words.length ? `${left} of ${rows.length} rows` : "";
  });
}
// Light or dark by hand; otherwise as the system says.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
