/* The small script behind the pages. Everything works without it, only with more page loads. */
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  /* Menus are <details>: a click elsewhere or Escape closes them. */
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details[data-menu][open]"))
      if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = event.target.closest?.("details[data-menu][open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });

  /* Toasts live in a polite live region, so they are read out as well. */
  const toast = (text, { url = "", error = false } = {}) => {
    const area = document.getElementById("toasts");
    const box = document.createElement("div");
    box.className = error ? "toast-note is-error" : "toast-note";
    const line = document.createElement(url ? "a" : "span");
    line.textContent = text;
    if (url) line.href = url;
    box.append(line);
    area.append(box);
    setTimeout(() => box.remove(), 8000);
  };

  /* A hidden tab does not poll. */
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.target.hasAttribute?.("data-poll")) event.preventDefault();
  });
  const problem = (event, text) => {
    if (!event.target.hasAttribute?.("data-poll")) toast(text, { error: true });
  };
  document.addEventListener("htmx:responseError", (event) => problem(event, document.body.dataset.failed));
  document.addEventListener("htmx:sendError", (event) => problem(event, document.body.dataset.offline));

  /* The bell says what is new when it is swapped in with a sentence. */
  document.addEventListener("htmx:afterSettle", (event) => {
    const bell = event.target.id === "bell" ? event.target : null;
    if (!bell?.dataset.announcement) return;
    toast(bell.dataset.announcement, { url: bell.href });
    delete bell.dataset.announcement;
  });

  /* What a verb did, for those who do not see the page change. */
  document.addEventListener("say", (event) => {
    document.getElementById("announcer").textContent = event.detail.value;
  });

  /* Buttons that fill a field: due date presets. */
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-fill]");
    if (!button) return;
    const field = document.getElementById(button.dataset.fill);
    field.value = button.dataset.value;
    field.focus();
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });

  /* All boxes of a name, or none. A form with data-chosen tells how many are ticked, and is there
     while any is. Its boxes are elsewhere, in the rows of a table. */
  const boxesOf = (form, name) => [...form.elements].filter((e) => e.type === "checkbox" && e.name === name);
  const countChosen = () => {
    for (const form of document.querySelectorAll("form[data-chosen]")) {
      const boxes = boxesOf(form, form.dataset.chosen);
      const ticked = boxes.filter((box) => box.checked).length;
      form.hidden = !ticked;
      const count = form.querySelector("[data-chosen-count]");
      const { one, many } = count.dataset;
      const text = !ticked ? "" : ticked === 1 ? one : many.replace("%s", ticked.toLocaleString(root.lang));
      // Said by the announcer: a region that was hidden until now is not read out.
      if (count.textContent !== text) document.getElementById("announcer").textContent = text;
      count.textContent = text;
      for (const all of document.querySelectorAll(`[data-tick-all="${form.dataset.chosen}"]`)) {
        all.checked = ticked === boxes.length;
        all.indeterminate = ticked > 0 && ticked < boxes.length;
      }
    }
  };
  const tickAll = (form, name, checked) => {
    for (const box of boxesOf(form, name)) box.checked = checked;
    countChosen();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-tick], [data-untick]");
    if (!button) return;
    const { tick, untick } = button.dataset;
    tickAll(button.form, tick ?? untick, tick !== undefined);
    // The button itself may be gone now: go on where the choosing began.
    if (button.form.hidden) document.querySelector(`[data-tick-all="${untick}"]`)?.focus();
  });
  let lastTicked = null;
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.('input[type="checkbox"][form]');
    if (!box?.form?.dataset.chosen) return;
    const boxes = boxesOf(box.form, box.name);
    const [from, to] = [boxes.indexOf(lastTicked), boxes.indexOf(box)].sort((a, b) => a - b);
    // With the Shift key: all between this one and the last.
    if (event.shiftKey && from >= 0)
      for (const between of boxes.slice(from, to + 1)) between.checked = box.checked;
    lastTicked = box;
    countChosen();
  });
  document.addEventListener("change", (event) => {
    const name = event.target.dataset?.tickAll;
    const form = name && document.querySelector(`form[data-chosen="${name}"]`);
    if (form) tickAll(form, name, event.target.checked);
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-browser-zone]");
    if (button)
      document.getElementById(button.dataset.browserZone).value =
        Intl.DateTimeFormat().resolvedOptions().timeZone;
  });

  /* Only the chosen team's people are offered as assignees. */
  const narrow = (team) => {
    const select = document.getElementById(team.dataset.narrows);
    if (!select) return;
    for (const group of select.querySelectorAll("optgroup")) {
      const fits = !team.value || group.label === team.selectedOptions[0].text;
      group.hidden = group.disabled = !fits;
    }
    const chosen = select.selectedOptions[0];
    if (chosen?.parentElement.disabled) {
      const same = [...select.options].find((o) => o.value === chosen.value && !o.parentElement.disabled);
      if (same) same.selected = true;
      else select.value = "";
    }
  };
  const prepare = (within) => {
    for (const team of within.querySelectorAll("select[data-narrows]")) narrow(team);
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-narrows]")) narrow(event.target);
    if (event.target.matches("[data-hide-changes]")) {
      document.getElementById("timeline").classList.toggle("hide-changes", event.target.checked);
      remember("hide-changes", event.target.checked);
    }
  });
  const remember = (name, value) => {
    try { localStorage.setItem(name, value ? "1" : ""); } catch { /* storage may be off */ }
  };
  const recall = (name) => {
    try { return localStorage.getItem(name) === "1"; } catch { return false; }
  };
  const restoreToggle = () => {
    const toggle = document.querySelector("[data-hide-changes]");
    if (!toggle || !recall("hide-changes")) return;
    toggle.checked = true;
    document.getElementById("timeline").classList.add("hide-changes");
  };

  /* Ctrl+Enter sends; "/" goes to the search field; "r" writes a reply, "n" an internal note. */
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea"))
      event.target.form?.requestSubmit();
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey &&
        !event.target.closest("input, textarea, select, [contenteditable]")) {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
    if ((event.key === "r" || event.key === "n") && !event.ctrlKey && !event.metaKey && !event.altKey &&
        !event.target.closest("textarea, select, [contenteditable], input:not([type=radio], [type=checkbox])")) {
      const kind = document.querySelector(`[data-writes][aria-keyshortcuts="${event.key}"]`);
      if (!kind) return;
      event.preventDefault();
      kind.checked = true;
      document.getElementById(kind.dataset.writes).focus();
    }
  });

  /* A form that leaves the page is sent once, however often the button is pressed. */
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[hx-post], [hx-get]") || event.defaultPrevented || form.method !== "post") return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "1";
    setTimeout(() => delete form.dataset.sent, 5000);  // the request may have failed
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  /* A reply being written survives a reload, a lost connection and an ended session. */
  const draftOf = (field) => `draft:${document.body.dataset.person}:${location.pathname}:${field.name}`;
  const drafts = () => document.querySelectorAll("textarea[data-draft]");
  document.addEventListener("input", (event) => {
    if (!event.target.matches("textarea[data-draft]")) return;
    try { sessionStorage.setItem(draftOf(event.target), event.target.value); } catch { /* off or full */ }
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, successful, xhr } = event.detail;
    if (!successful || xhr.getResponseHeader("HX-Refresh")) return;
    for (const field of elt.querySelectorAll?.("textarea[data-draft]") ?? [])
      try { sessionStorage.removeItem(draftOf(field)); } catch { /* off */ }
  });
  const restoreDrafts = () => {
    for (const field of drafts())
      try { field.value ||= sessionStorage.getItem(draftOf(field)) ?? ""; } catch { /* off */ }
  };
  restoreDrafts();

  document.addEventListener("htmx:afterSwap", () => { prepare(document); restoreToggle(); countChosen(); });
  addEventListener("pageshow", countChosen);  // the Back button brings ticks along
  countChosen();
  prepare(document);
  restoreToggle();
})();
