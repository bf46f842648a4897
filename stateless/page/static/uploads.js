// Takes files that are dropped or chosen, uploads them one after the other, and shows what became of them.

import { Problem } from "./api.js";
import { byId, make } from "./dom.js";
import { count, counted } from "./numbers.js";
import { askForKey } from "./options.js";
import { upload } from "./upload.js";

/** The last upload in the queue. */
let last = Promise.resolve();

/** Starts listening for files. `done()` is called after each file. */
export function listen(done) {
  const zone = byId("upload");
  byId("upload-files").addEventListener("change", (event) => {
    add(event.target.files, done);
    event.target.value = ""; // the same file can be chosen again
  });
  const section = byId("documents"); // a file that is dropped beside the frame would replace the page
  for (const name of ["dragenter", "dragover"]) {
    section.addEventListener(name, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  section.addEventListener("dragleave", () => zone.classList.remove("over"));
  section.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (!zone.hidden) add(event.dataTransfer.files, done);
  });
}

function add(files, done) {
  for (const file of files) {
    const state = make("span", { className: "quiet" }, "waiting");
    byId("upload-list").append(make("li", {}, make("span", {}, file.name), state));
    last = last.then(() => send(file, state)).then(() => done()).catch(tolerate);
  }
}

/** Reports an error of the page. A Problem of one file or of the list does not stop the next file. */
function tolerate(error) {
  if (!(error instanceof Problem)) reportError(error);
}

async function send(file, state) {
  state.textContent = "converting";
  const progress = (stored, all) => {
    state.textContent = `${count(stored)} of ${counted(all, "passage")} stored`;
  };
  try {
    const { passages, notes } = await upload(file, progress);
    state.textContent = [`${counted(passages, "passage")} stored`, ...notes].join("; ");
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    state.className = "wrong";
    state.textContent = error.violations[0]?.description ?? error.message;
    if ([401, 403].includes(error.status)) askForKey(error.message);
  }
}
