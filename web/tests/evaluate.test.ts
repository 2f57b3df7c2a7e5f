import assert from "node:assert/strict";
import test from "node:test";
import { function_from } from "../src/map/evaluate";

/** As the language itself does it. */
function same(names: string[], body: string, ...values: unknown[]): void {
  const real = new Function(...names, body) as (...given: unknown[]) => unknown;
  assert.deepEqual(function_from(names, body)(...structuredClone(values)), real(...structuredClone(values)), body);
}

test("programs give what JavaScript gives", () => {
  same(["a", "b"], "return a*b+a/b-a%b", 17, 5);
  same(["a"], "var s=0;for(var i=0;i<a.length;++i){if(a[i]<0)continue;if(a[i]>9)break;s+=a[i];}return s", [1, -2, 3, 10, 4]);
  same(["a"], "var x;if(a){x=1}else{x=2}return x", 0);
  same(["a"], "return [typeof a, !a, -a, +a, ~a, void 0]", 3);
  same(["a"], "a.x=a.x||5;a['y']=a.x&&7;a.n++;return [a, a.n--, a.n]", { n: 1 });
  same(["a"], "var i=0;while(true){if(++i>a)return i;}", 6);
  same(["a", "b"], "return a===b?'same':a==b?'alike':'other'", 1, "1");
  same([], "var a=[1,2,3],o={'k':a,l:2};return [o.k.length,o['l'],a.concat([4]).join('-'), 'l' in o]");
  same(["a"], "return (1,2,a<<2|1)^3", 5);
  same([], "return new Float32Array([1,2]).length");
});

test("functions have their own variables, arguments and this", () => {
  const made = function_from(["g"], '"use strict";var v0;v0=g.base;return {"add":function(a0){var v1;v1=v0+a0;return v1},"self":function(a0){return this.k+a0},"set":function(a0){v0=a0}}')(
    { base: 40 }) as { add: (n: number) => number; self: (this: object, n: number) => number; set: (n: number) => void };
  assert.equal(made.add(2), 42);
  assert.equal(made.self.call({ k: 5 }, 1), 6);
  made.set(1);
  assert.equal(made.add(2), 3);
  assert.equal(made.add.call(undefined, 1), 2);
});

test("methods are called on their object", () => {
  same(["a"], "return a.push(4)+a.indexOf(2)", [1, 2, 3]);
  const seen: unknown[] = [];
  function_from(["f"], "f.call(f,1,2)")(function (this: unknown, ...rest: unknown[]) { seen.push(typeof this, ...rest); });
  assert.deepEqual(seen, ["function", 1, 2]);
});

test("what it does not know is refused before anything runs", () => {
  for (const body of ["try{a()}catch(e){}", "return window", "return eval('1')", "with(a){}", "x=1", "label:for(;;)break label", "return /x/g.test('x')&&delete a.b"])
    assert.throws(() => function_from(["a"], body), body);
});
