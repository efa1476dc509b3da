"use strict";
// Goes on by itself. The fragment of an address is never sent to a server, so it is carried from page to page.
const form = document.querySelector("form[data-next]");
const link = document.querySelector("a[data-next]");
if (form) {
  form.action += location.hash;
  form.submit();
} else if (link) {
  location.replace(link.href + location.hash);
}
