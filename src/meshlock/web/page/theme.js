// Light or dark: as the system says, until somebody presses the button.

const KEY = "meshlock-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

// Follow it from now on; `changed` is called whenever it is another.
export function theme(button, changed = () => {}) {
  const root = document.documentElement;
  const apply = () => {
    const name = localStorage.getItem(KEY);
    root.classList.toggle("dark", name ? name === "dark" : system.matches);
    changed();
  };
  button.addEventListener("click", () => {
    localStorage.setItem(KEY, root.classList.contains("dark") ? "light" : "dark");
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}
