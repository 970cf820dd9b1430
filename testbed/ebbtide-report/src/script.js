(function () {
  "use strict";
  // A drawing's title would pop up beside our own tip: keep it as the accessible name only.
  document.querySelectorAll("svg[role=img]").forEach(function (svg) {
    var title = svg.querySelector("title");
    var desc = svg.querySelector("desc");
    if (!title) { return; }
    svg.setAttribute("aria-label", title.textContent + ". " + (desc ? desc.textContent : ""));
    svg.removeAttribute("aria-labelledby");
    title.remove();
  });

  var tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("aria-hidden", "true");
  document.body.appendChild(tip);
  document.addEventListener("pointermove", function (event) {
    var target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (!target) { tip.style.display = "none"; return; }
    tip.textContent = target.getAttribute("data-tip");
    tip.style.display = "block";
    var x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    var y = event.clientY + 16;
    if (y + tip.offsetHeight > window.innerHeight) { y = event.clientY - tip.offsetHeight - 10; }
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = y + "px";
  });

  document.querySelectorAll(".legend button").forEach(function (button) {
    button.addEventListener("click", function () {
      var k = button.getAttribute("data-k");
      var off = button.getAttribute("aria-pressed") === "true";
      document.querySelectorAll(".legend button[data-k=" + k + "]").forEach(function (same) {
        same.setAttribute("aria-pressed", String(!off));
      });
      document.querySelectorAll("svg[role=img] ." + k).forEach(function (shape) {
        shape.classList.toggle("off", off);
      });
    });
  });

  // A choice of what is shown hides what is not; without a script everything stays.
  document.querySelectorAll("select").forEach(function (choice) {
    var show = function () {
      if (choice.id === "matrix-figure") {
        document.querySelectorAll(".matrices").forEach(function (matrix) {
          matrix.setAttribute("data-figure", choice.value);
        });
        return;
      }
      document.querySelectorAll("[data-choice=" + choice.id + "]").forEach(function (part) {
        part.hidden = part.getAttribute("data-value") !== choice.value;
      });
    };
    choice.addEventListener("change", show);
    show();
  });

  document.querySelectorAll(".command").forEach(function (line) {
    var code = line.querySelector("code");
    // Lines break between words, not after the hyphens of an option.
    var words = code.textContent.split(" ");
    code.textContent = "";
    words.forEach(function (word, index) {
      var span = document.createElement("span");
      span.className = "w";
      span.textContent = word;
      if (index > 0) { code.appendChild(document.createTextNode(" ")); }
      code.appendChild(span);
    });
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", function () {
      var done = function () {
        button.textContent = "copied";
        setTimeout(function () { button.textContent = "copy"; }, 1500);
      };
      var select = function () { window.getSelection().selectAllChildren(code); };
      if (navigator.clipboard) {
        navigator.clipboard.writeText(code.textContent).then(done, select);
      } else {
        select();
      }
    });
    line.appendChild(button);
  });
}());
