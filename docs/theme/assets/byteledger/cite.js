// The cite control and the derivation of a number, in one dialog. Everything it opens from is a plain link without it.
(() => {
  const page = JSON.parse(document.getElementById("byteledger").textContent)
  const words = page.words
  const sources = window.byteLedgerSources || {}
  let dialog

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties)
    element.append(...children)
    return element
  }

  // The text of an element without its marks and permalinks.
  const said = element => {
    const copy = element.cloneNode(true)
    copy.querySelectorAll(".claim, .permalink, .headerlink, .katex-mathml, .claim-id").forEach(part => part.remove())
    return copy.textContent.replace(/\s+/g, " ").trim()
  }

  // What a permalink points at: its kind, what it is called, and for a claim what it says.
  const describe = link => {
    const id = decodeURIComponent(link.hash.slice(1))
    const target = document.getElementById(id) || link
    const about = {id, references: [], kind: words.section, name: id}
    if (link.matches(".claim")) {
      const block = link.closest("li, p, td, th, dd") || link.parentElement
      const row = link.closest("tr")
      about.kind = words.claim
      about.tag = link.dataset.tag
      about.quote = link.closest("th") && row ? [...row.children].map(said).filter(Boolean).join(words.separator) : said(block)
      about.references = (link.dataset.references || "").split(" ").filter(Boolean)
    } else if (target.matches("figure")) {
      about.kind = words.table
      about.name = said(target.querySelector(".title") || target.querySelector("figcaption") || target)
    } else if (target.matches(".formula")) {
      about.kind = words.formula
      about.name = target.getAttribute("aria-label").replace(words.formula, "").trim()
    } else if (target.matches("dt")) {
      about.kind = words.term
      about.name = said(target)
    } else if (target.matches(".reference")) {
      about.kind = words.source
      about.name = said(target.querySelector("cite"))
      about.references = [id.replace(/^ref\./, "")]
    } else if (target.matches(".record")) {
      about.kind = words.record
      about.name = id.replace(/^record\./, "")
    } else {
      about.name = said(target)
    }
    return about
  }

  const address = id => {
    const canonical = document.querySelector("link[rel=canonical]")
    const root = canonical ? canonical.href : location.protocol.startsWith("http") ? location.href.split("#")[0] : page.url
    return root + "#" + id
  }

  const bibtexKey = id => "byte-ledger-" + id.replace(/[^A-Za-z0-9:-]/g, "-")
  const tex = text => text.replace(/[\\{}$&%#_~^]/g, sign => ({"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"})[sign] || "\\" + sign)
  const markdown = text => text.replace(/[\\`*_[\]<>|#]/g, "\\$&")

  const citations = about => {
    const where = address(about.id)
    const h1 = document.querySelector("h1")
    const title = h1 ? said(h1) : document.title
    const kind = about.kind + (about.tag ? words.open + about.tag + words.close : "")
    const what = about.kind === words.claim ? kind + " " + about.id : kind + words.colon + about.name
    const revision = words.revision + " " + page.revision + words.open + page.date + words.close
    const original = about.references.map(id => sources[id]).filter(Boolean)
    const also = original.length ? " " + words.original + words.colon + original.map(source => source.text).join("; ") : ""
    const quoted = about.quote ? words.quoteOpen + about.quote + words.quoteClose : ""
    return {
      sentence: [page.title, title, what].join(words.comma) + (quoted ? words.colon + quoted : "") + words.comma + revision + words.comma + where + words.stop + also,
      markdown:
        (about.quote ? "> " + markdown(about.quote) + "\n>\n> " : "") +
        "[" + markdown([page.title, title, what].join(words.comma)) + "](" + where + ")" + words.comma + revision +
        (original.length ? "\n" + (about.quote ? "> " : "") + words.original + words.colon + original.map(source => source.url ? "[" + markdown(source.text) + "](" + source.url + ")" : markdown(source.text)).join("; ") : ""),
      bibtex: [
        "@misc{" + bibtexKey(about.id) + ",\n" +
          "  title = {{" + tex(title + ": " + (about.kind === words.claim ? about.id : about.name)) + "}},\n" +
          "  author = {" + page.authors.map(author => "{" + tex(author) + "}").join(" and ") + "},\n" +
          "  howpublished = {" + tex(page.title) + "},\n" +
          "  year = {" + page.date.slice(0, 4) + "},\n" +
          "  url = {" + where + "},\n" +
          "  note = {" + tex(kind + words.comma + revision) + "}\n}",
        ...original.map(source => source.bibtex)
      ].join("\n\n")
    }
  }

  const open = (title, ...content) => {
    if (!dialog) {
      dialog = make("dialog", {className: "bl-dialog"})
      dialog.addEventListener("click", event => event.target === dialog && dialog.close())
      document.body.append(dialog)
    }
    const close = make("button", {type: "button", className: "bl-close", ariaLabel: words.shut, textContent: "×"})
    close.addEventListener("click", () => dialog.close())
    const heading = make("h2", {textContent: title, id: "bl-dialog-title"})
    dialog.setAttribute("aria-labelledby", "bl-dialog-title")
    dialog.replaceChildren(make("header", {}, heading, close), ...content)
    dialog.showModal()
  }

  const copy = async field => {
    try {
      await navigator.clipboard.writeText(field.value)
    } catch {
      field.select() // where the clipboard is closed to scripts
      document.execCommand("copy")
    }
  }

  const cite = link => {
    const about = describe(link)
    const texts = citations(about)
    const field = make("textarea", {readOnly: true, rows: 7, value: texts.sentence, ariaLabel: words.citation})
    const choices = make("div", {className: "bl-choices", role: "radiogroup", ariaLabel: words.form})
    for (const form of ["sentence", "markdown", "bibtex"]) {
      const radio = make("input", {type: "radio", name: "bl-form", value: form, checked: form === "sentence"})
      radio.addEventListener("change", () => { field.value = texts[form]; status.textContent = "" })
      choices.append(make("label", {}, radio, " " + words[form]))
    }
    const button = make("button", {type: "button", className: "bl-copy", textContent: words.copy})
    const status = make("span", {className: "bl-status", role: "status"})
    button.addEventListener("click", async () => { await copy(field); status.textContent = words.copied })
    const permalink = make("a", {href: "#" + about.id, textContent: address(about.id), className: "bl-address"})
    permalink.addEventListener("click", () => dialog.close())
    open(words.cite + " · " + (about.kind === words.claim ? about.id : about.name), permalink, choices, field, make("p", {className: "bl-actions"}, button, status))
  }

  const derive = link => {
    const rows = JSON.parse(link.dataset.steps).map(([name, right, value, record, id]) =>
      make("tr", {},
        make("th", {scope: "row", textContent: name}),
        make("td", {textContent: right ? "= " + right : ""}),
        make("td", {className: "number", textContent: "= " + value}),
        make("td", {}, record ? make("a", {href: record, textContent: id}) : "")))
    const derivation = make("a", {href: link.href, textContent: words.derivation})
    derivation.addEventListener("click", () => dialog.close())
    open(link.textContent.trim(),
      make("div", {className: "table-scroll"}, make("table", {className: "data bl-steps"}, make("tbody", {}, ...rows))),
      make("p", {className: "bl-actions"}, derivation, link.dataset.source ? make("span", {textContent: words.sources + words.colon + link.dataset.source}) : ""))
  }

  for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false

  document.addEventListener("click", event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
    const link = event.target.closest && event.target.closest("a.claim[id], a.permalink, a.headerlink, a.value[data-steps]")
    if (link && !link.closest("dialog")) {
      event.preventDefault()
      if (link.matches(".value")) {
        derive(link)
      } else {
        history.replaceState(null, "", link.hash)
        cite(link)
      }
      return
    }
    const button = event.target.closest && event.target.closest("button[data-copy]")
    if (button) {
      const field = document.getElementById(button.dataset.copy)
      field.hidden = false
      copy(field).then(() => { button.textContent = words.copied; field.hidden = true })
    }
  })
})()
