// A long table can be searched and sorted. Without this file all its rows stand in the order of the data.
for (const table of document.querySelectorAll("table[data-filter]")) {
  const body = table.tBodies[0]
  const rows = [...body.rows]
  const text = new Map(rows.map(row => [row, row.textContent.toLowerCase().replace(/\s+/g, " ")]))

  // Every word has to occur; digits are found with and without their separators.
  const bar = Object.assign(document.createElement("form"), { className: "table-filter", role: "search" })
  const input = Object.assign(document.createElement("input"), { type: "search", placeholder: table.dataset.filter, autocomplete: "off", spellcheck: false })
  input.setAttribute("aria-label", table.dataset.filter)
  const output = document.createElement("output")
  bar.append(input, output)
  bar.addEventListener("submit", event => event.preventDefault())
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    let shown = 0
    for (const row of rows) {
      const said = text.get(row)
      row.hidden = !words.every(word => said.includes(word) || said.replaceAll(",", "").includes(word))
      shown += !row.hidden
    }
    output.value = `${shown} / ${rows.length} ${table.dataset.shown}`
  }
  input.addEventListener("input", show)
  table.closest(".table-scroll").before(bar)
  show()

  // A heading sorts by its column, and once more turns the order round. Rows without a value stay at the end.
  const value = (row, column) => {
    const cell = row.cells[column]
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value)
    const said = cell.textContent.trim()
    return said === "—" ? null : said
  }
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true })
  for (const heading of table.tHead.querySelectorAll("th[data-column]")) {
    const button = Object.assign(document.createElement("button"), { type: "button", title: table.dataset.sort })
    const unit = heading.querySelector(".unit")  // below the name and its arrow
    if (unit) unit.remove()
    button.append(...heading.childNodes)
    heading.append(button, ...(unit ? [unit] : []))
    button.addEventListener("click", () => {
      const numeric = heading.classList.contains("number")
      const up = heading.ariaSort ? heading.ariaSort === "descending" : !numeric
      for (const other of table.tHead.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort")
      heading.setAttribute("aria-sort", up ? "ascending" : "descending")
      const column = Number(heading.dataset.column)
      const order = rows.map(row => [value(row, column), row]).sort(([a], [b]) =>
        a === null || b === null ? (a === null) - (b === null) : compare(a, b) * (up ? 1 : -1))
      body.append(...order.map(([, row]) => row))
    })
  }
}
