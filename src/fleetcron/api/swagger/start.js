// Relative, so that it works under any path prefix. Nothing is loaded from elsewhere.
window.addEventListener("load", () => {
  SwaggerUIBundle({ url: "openapi.json", dom_id: "#docs", deepLinking: true, validatorUrl: null, tryItOutEnabled: true });
});
