// Keeps the anchor when the language is switched. Everything on the site reads without this file.
document.addEventListener("click", event => {
  const link = event.target.closest && event.target.closest("a[data-language]")
  if (link && location.hash) link.hash = location.hash
}, true)
