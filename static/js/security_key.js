// The button that asks a security key. What talks to the key is allauth's; this says what went wrong.

const form = document.querySelector("[data-security-key]");
const button = form.querySelector("[data-key-button]");
const failed = document.querySelector("[data-key-failed]");

// Without a name or a secure connection browsers have no keys to offer.
if (window.PublicKeyCredential === undefined || /^[\d.]+$|^\[/.test(location.hostname)) {
  button.disabled = true;
  document.querySelector("[data-key-unsupported]").hidden = false;
} else {
  const ids = { credential: form.elements.credential.id, data: "key-options" };
  if (form.dataset.securityKey === "add") {
    window.allauth.webauthn.forms.addForm({ ids: { ...ids, add: button.id } });
  } else {
    window.allauth.webauthn.forms.authenticateForm({ ids: { ...ids, authenticate: button.id } });
  }
}

button.addEventListener("click", () => {
  failed.hidden = true;
});

document.addEventListener("allauth.error", (event) => {
  event.preventDefault(); // said here, not in the console
  failed.hidden = false;
});
