"use strict";
// Saves a picture of the page as a file: vector pictures with their colours inside, pixels enlarged.
(function () {
  const PAINT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-family", "text-anchor"];

  function offer(href, name) {
    const link = document.createElement("a");
    link.href = href; link.download = name;
    document.body.append(link); link.click(); link.remove();
  }

  function vector(svg) {
    const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      for (const name of PAINT) to[i].style.setProperty(name, style.getPropertyValue(name));
    });
    const space = document.documentElement.namespaceURI.replace("1999/xhtml", "2000/svg");
    copy.setAttribute("xmlns", space);
    return URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  }

  function pixels(image) {
    const times = Math.max(1, Math.round(720 / Math.max(image.naturalWidth, image.naturalHeight)));
    const canvas = document.createElement("canvas");
    canvas.width = times * image.naturalWidth; canvas.height = times * image.naturalHeight;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  }

  document.querySelectorAll("main section figure").forEach((figure, number) => {
    const svg = figure.querySelector("svg"), image = figure.querySelector("img:not(.strip)"), canvas = figure.querySelector("canvas");
    if (!svg && !image && !canvas) return;
    const section = figure.closest("section").id, name = `symlift-${section}-${number + 1}`;
    const button = document.createElement("button");
    button.type = "button"; button.className = "save"; button.textContent = "save";
    button.setAttribute("aria-label", "Save this picture");
    button.addEventListener("click", () => {
      if (canvas) offer(canvas.toDataURL("image/png"), `${name}.png`);
      // of a pair the recovered half
      else if (image) offer(pixels([...figure.querySelectorAll("img:not(.strip)")].at(-1)), `${name}.png`);
      else offer(vector([...figure.querySelectorAll("svg")].at(-1)), `${name}.svg`);
    });
    figure.append(button);
  });
})();
