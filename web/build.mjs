// node build.mjs OUT: the dashboard as the files that the program embeds: index.html, style.css, app.js, app.css.
// node build.mjs --tests OUT: its unit tests, for node's own test runner.
import { cp, mkdir, readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = path.dirname(fileURLToPath(import.meta.url));

// Two places at which the map's libraries need more than the content security policy allows. Each text has to be found
// exactly once: a new version is looked at again by whoever brings it.
const changes = [
  {
    // regl makes its drawing code from text.
    file: /[\\/]regl[\\/]dist[\\/]regl\.(unchecked\.)?js$/,
    from: "var proc = Function.apply(null, linkedNames.concat(src))",
    to: "var proc = require('streamvec:evaluate').function_from(linkedNames, src)",
  },
  {
    // regl-scatterplot makes a <style> for its lasso.
    file: /[\\/]regl-scatterplot\.esm\.js$/,
    from: `const lassoStyleEl = document.createElement('style');
    document.head.appendChild(lassoStyleEl);
    cachedLassoStylesheets = lassoStyleEl.sheet;`,
    to: `cachedLassoStylesheets = new CSSStyleSheet();
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, cachedLassoStylesheets];`,
  },
];

const under_the_policy = {
  name: "under-the-policy",
  setup(bundler) {
    const evaluate = path.join(root, "src/map/evaluate.ts");
    bundler.onResolve({ filter: /^streamvec:evaluate$/ }, () => ({ path: evaluate }));
    bundler.onResolve({ filter: /^regl$/ }, () => ({ path: path.join(root, "node_modules/regl/dist/regl.unchecked.js") }));
    for (const { file, from, to } of changes) {
      bundler.onLoad({ filter: file }, async ({ path: name }) => {
        const parts = (await readFile(name, "utf8")).split(from);
        if (parts.length !== 2) throw new Error(`${name} is not as build.mjs expects it: ${from}`);
        return { contents: parts.join(to), loader: "js" };
      });
    }
  },
};

const common = { bundle: true, target: ["es2022"], logLevel: "warning", absWorkingDir: root, plugins: [under_the_policy] };

async function bundle_page(out) {
  await mkdir(out, { recursive: true });
  await cp(path.join(root, "static"), out, { recursive: true });
  await build({ ...common, entryPoints: { app: "src/main.ts" }, outdir: out, format: "iife", minify: true, legalComments: "eof" });
}

async function bundle_tests(out) {
  const names = (await readdir(path.join(root, "tests"))).filter((name) => name.endsWith(".test.ts"));
  await build({ ...common, entryPoints: names.map((name) => `tests/${name}`), outdir: out, format: "esm", platform: "node",
                outExtension: { ".js": ".mjs" }, target: ["node18"], external: ["node:*"] });
}

const [flag, out] = process.argv[2] === "--tests" ? ["tests", process.argv[3]] : ["page", process.argv[2]];
if (!out) throw new Error("usage: node build.mjs [--tests] OUT");
await (flag === "tests" ? bundle_tests(path.resolve(out)) : bundle_page(path.resolve(out)));
