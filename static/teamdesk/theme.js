/* Runs before the first paint, so that a dark page never flashes light. */
(() => {
  const root = document.documentElement;
  if (!root.hasAttribute("data-theme-auto")) return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => root.setAttribute("data-bs-theme", dark.matches ? "dark" : "light");
  dark.addEventListener("change", apply);
  apply();
})();
