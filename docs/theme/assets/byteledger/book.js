// Small comforts. Everything on the site reads without this file.

// The language link keeps the anchor, also when it is opened in a new tab or copied.
const language = document.querySelector("a[data-language]")
if (language) {
  const follow = () => { language.hash = location.hash }
  addEventListener("hashchange", follow)
  for (const kind of ["pointerenter", "focus", "click"]) language.addEventListener(kind, follow) // cite.js replaces the anchor silently
  follow()
}

// A browser may break a line between a formula and the comma after it, or the bracket before it: bind them.
// All are measured before the first is moved: a measure after each move would lay the whole page out anew.
const formulas = [...document.querySelectorAll(".md-content bl-math")].map(math => [math, math.getBoundingClientRect().width])
for (const [math, wide] of formulas) {
  const { previousSibling: before, nextSibling: after } = math
  const closing = after && after.nodeType === 3 && after.data.match(/^[，。、；：！？）》」』】”’…,.;:!?)\]%]+/)
  const opening = before && before.nodeType === 3 && before.data.match(/[（《「『【“‘(\[]+$/)
  if ((!closing && !opening) || wide > 220) continue // a long one must itself break
  const whole = Object.assign(document.createElement("span"), { className: "bl-whole" })
  math.before(whole)
  if (closing) after.splitText(closing[0].length)
  whole.append(...(opening ? [before.splitText(opening.index)] : []), math, ...(closing ? [after] : []))
}

// Tables of words whose rows do not fit a phone may be stacked there: a cell below the name of its column (book.css does).
const said = element => {
  const copy = element.cloneNode(true)
  for (const twin of copy.querySelectorAll(".katex-mathml")) twin.remove()
  return copy.textContent.trim()
}
const width = text => text.replace(/[^\x00-\xff]/g, "xx").length
for (const table of document.querySelectorAll(".md-content table")) {
  const names = [...table.querySelectorAll("thead th")].map(said)
  if (names.length < 2 || table.querySelector("td.number, [colspan]")) continue
  if (![...table.rows].some(row => [...row.cells].reduce((sum, cell) => sum + width(said(cell)), 0) > 44)) continue
  table.dataset.stacked = names.length
  // A table that is laid out as blocks loses its meaning to assistive technology unless it is said.
  table.setAttribute("role", "table")
  if (table.caption) table.caption.setAttribute("role", "caption")
  for (const row of table.rows) {
    row.setAttribute("role", "row")
    for (const [i, cell] of [...row.cells].entries()) {
      cell.setAttribute("role", cell.tagName === "TD" ? "cell" : cell.scope === "row" ? "rowheader" : "columnheader")
      if (!row.closest("tbody")) continue
      if (["", "—"].includes(said(cell))) cell.dataset.nothing = ""
      else cell.dataset.column = names[i]
    }
  }
}

// Say when there is more of a table to the side.
for (const box of document.querySelectorAll(".table-scroll")) {
  const hint = Object.assign(document.createElement("span"), { className: "table-hint", hidden: true })
  hint.textContent = document.documentElement.lang.startsWith("zh") ? "左右滑动可看全表 →" : "Scroll sideways for the whole table →"
  hint.setAttribute("aria-hidden", "true")
  box.after(hint)
  const look = () => {
    const scrolls = box.scrollWidth > box.clientWidth + 1
    hint.hidden = !scrolls
    box.classList.toggle("scrolls", scrolls)
    box.classList.toggle("at-end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 2)
  }
  box.addEventListener("scroll", look, { passive: true })
  new ResizeObserver(look).observe(box)
}

// The claims index: filter by tag, chapter and source.
const filter = document.querySelector("form.claims-filter")
if (filter) {
  const entries = [...document.querySelectorAll(".claim-entry")]
  const selects = [...filter.querySelectorAll("select")]
  const headings = [...document.querySelectorAll(".md-content h2")]
  const show = () => {
    const fits = entry => selects.every(({ value, dataset }) => !value || entry.dataset[dataset.filter].split(" ").includes(value))
    for (const entry of entries) entry.hidden = !fits(entry)
    const shown = entries.filter(entry => !entry.hidden)
    filter.querySelector("output").value = shown.length
    for (const heading of headings) heading.hidden = !shown.some(entry => heading.id === "claims." + entry.dataset.chapter)
  }
  // A link to a claim that is filtered away shows it.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
    if (!target || !target.hidden) return
    filter.reset()
    show()
    target.scrollIntoView()
  }
  filter.hidden = false
  filter.addEventListener("submit", event => event.preventDefault())
  filter.addEventListener("change", show)
  addEventListener("hashchange", reveal)
  show() // the browser may have kept a choice
}
