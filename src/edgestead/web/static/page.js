// What pages do better with script: they ask before something is deleted. All of them work without.
for (const button of document.querySelectorAll("button.danger")) {
  button.addEventListener("click", (event) => {
    if (!window.confirm((button.getAttribute("aria-label") || button.textContent.trim()) + "?")) event.preventDefault();
  });
}
