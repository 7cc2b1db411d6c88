// What pages do better with script: they ask before something is deleted, forms that only look show their answer
// while one types or slides, and a row is edited where it stands. All of them work without, but passkeys.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.danger");
  if (button && !window.confirm((button.getAttribute("aria-label") || button.textContent.trim()) + "?")) event.preventDefault();
});

// An element with data-stream shows what the server sends of it, while the page is looked at. What is as it was stays, and
// so does who reads or uses it; in a section that is new the focus goes to the element of the same id.
const renew = (place, text) => {
  for (const found of [...new DOMParser().parseFromString(text, "text/html").body.children]) {
    const old = [...place.children].find((one) => one.id === found.id);
    if (!old) { place.append(found); continue; }
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    found.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? one.open; });
    if (old.innerHTML === found.innerHTML) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    old.replaceChildren(...found.childNodes);
    if (focused) document.getElementById(focused)?.focus();
  }
};
for (const place of document.querySelectorAll("[data-stream]")) {
  let stream = null;
  const look = () => {
    if (document.hidden) { stream?.close(); stream = null; return; }
    stream ??= new EventSource(place.dataset.stream);
    stream.onmessage = (event) => renew(place, event.data);
  };
  document.addEventListener("visibilitychange", look);
  window.addEventListener("pagehide", () => { stream?.close(); stream = null; });
  window.addEventListener("pageshow", look);
  look();
}

// A form with data-live="ID" asks for its page again and shows the element ID of it. Only the newest answer counts. What it
// says in short (data-say) is told to readers of the screen, whose speech the whole would fill.
const PAUSE_MS = 250;
for (const form of document.querySelectorAll("form[data-live]")) {
  let timer = 0, newest = 0;
  const look = async () => {
    const mine = ++newest, data = new URLSearchParams(new FormData(form));
    const path = form.dataset.path || form.getAttribute("action") || location.pathname;
    if (form.dataset.get) data.delete("form_key");
    const asked = form.method === "post" && !form.dataset.get ? fetch(path, { method: "POST", body: data }) : fetch(path + "?" + data);
    const answer = await asked.catch(() => null);
    if (!answer || answer.redirected || mine !== newest) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById(form.dataset.live), old = document.getElementById(form.dataset.live);
    if (!found || !old || mine !== newest) return;
    old.replaceChildren(...found.childNodes);
    const says = old.querySelector("[data-say]");
    if (!says) return;
    document.getElementById("told").textContent = says.textContent;
    form.querySelector("[aria-valuetext]")?.setAttribute("aria-valuetext", says.textContent);
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, PAUSE_MS); });
}

// What a slider is at stands beside it, in the output for it.
document.addEventListener("input", (event) => {
  const says = event.target.type === "range" && document.querySelector(`output[for="${event.target.id}"]`);
  if (says) says.textContent = event.target.value;
});

// A link or form with data-place="ID" puts the element ID of its answer into this page, which is not left. What is not
// there leads to the answer, and what was refused is shown in the place of everything.
const put = async (id, asked) => {
  const answer = await asked, page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById(id), old = document.getElementById(id), said = page.querySelector(".said");
  if (!found && answer.redirected) { location.assign(answer.url); return; }
  document.querySelectorAll(".said").forEach((one) => one.remove());
  if (!found || !old) { document.querySelector("main").replaceWith(page.querySelector("main")); return; }
  old.replaceWith(found);
  if (said) document.querySelector("h1").after(said);
  (found.querySelector("[aria-invalid]") || found.querySelector("input:not([type=hidden]), select, a[data-place]"))?.focus();
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-place]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  put(link.dataset.place, fetch(link.href)).catch(() => location.assign(link.href));
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-place]");
  if (!form) return;
  event.preventDefault();
  put(form.dataset.place, fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) })).catch(() => form.submit());
});

// A file that is chosen fills a field with its text.
for (const chooser of document.querySelectorAll("input[data-into]")) {
  chooser.addEventListener("change", async () => {
    const file = chooser.files[0];
    if (file) document.getElementById(chooser.dataset.into).value = await file.text();
  });
}

// A form with data-passkey=PATH asks there for a challenge, has the browser sign it, and sends what came of it.
const octets = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const base64url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const inOctets = (list) => (list || []).map((one) => ({ ...one, id: octets(one.id) }));

const askDevice = (asked) => {
  const publicKey = { ...asked, challenge: octets(asked.challenge) };
  if (!asked.user) return navigator.credentials.get({ publicKey });
  publicKey.user = { ...asked.user, id: octets(asked.user.id) };
  publicKey.excludeCredentials = inOctets(asked.excludeCredentials);
  return navigator.credentials.create({ publicKey });
};

const asJson = (made) => {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (made.response[name]) response[name] = base64url(made.response[name]);
  }
  return JSON.stringify({ id: made.id, rawId: base64url(made.rawId), type: made.type, response });
};

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const says = form.querySelector("[role=status]"), button = form.querySelector("button");
    button.disabled = true;
    try {
      const data = new URLSearchParams(new FormData(form));
      data.set("what", "ask");
      const told = await (await fetch(form.dataset.passkey, { method: "POST", body: data, headers: { accept: "application/json" } })).json();
      if (!told.passkey) throw new Error(told.error || "The server did not answer.");
      form.elements.answer.value = asJson(await askDevice(told.passkey));
      form.elements.challenge.value = told.passkey.challenge;
      form.submit();
    } catch (error) {
      const words = { NotAllowedError: "It was not allowed, or took too long.", InvalidStateError: "This device is registered already." };
      says.textContent = words[error.name] || error.message;
    } finally { button.disabled = false; }
  });
}
