// Runs the small programs that regl writes for itself, without making code from text: the service's content security
// policy forbids `Function` and `eval`, and should. The text is parsed once and becomes closures; what regl writes is
// ES5 without exceptions, labels or `with`, and anything else is refused with an error, on which the map is drawn
// without WebGL.
import { parse, type AnyNode, type Expression, type Function as FunctionNode, type Pattern } from "acorn";

/** A running function: its variables, its `this`, and the frame it was made in. */
interface Frame {
  readonly values: unknown[];
  readonly self: unknown;
  readonly outer: Frame | null;
}
type Value = (frame: Frame) => unknown;
type Store = (frame: Frame, value: unknown) => void;
type Bag = Record<PropertyKey, unknown>;

/** What a statement ends with: `null` goes on, otherwise the function returns or the loop is left or begun anew. */
type Outcome = null | typeof kBreak | typeof kContinue | { readonly value: unknown };
type Step = (frame: Frame) => Outcome;
const kBreak = Symbol("break");
const kContinue = Symbol("continue");

const kGlobals: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["undefined", undefined], ["NaN", NaN], ["Infinity", Infinity], ["Math", Math], ["Array", Array], ["Object", Object],
  ["Float32Array", Float32Array], ["isNaN", isNaN], ["performance", globalThis.performance], ["Date", Date],
]);

/** Names of one function, in the order of their slots. */
class Scope {
  readonly names: string[] = [];
  constructor(readonly outer: Scope | null) {}
  declare(name: string): number {
    const known = this.names.indexOf(name);
    return known >= 0 ? known : this.names.push(name) - 1;
  }
  /** How many frames out, and which slot; null where nobody has declared it. */
  find(name: string): { depth: number; slot: number } | null {
    let depth = 0;
    for (let scope: Scope | null = this; scope !== null; scope = scope.outer, ++depth) {
      const slot = scope.names.indexOf(name);
      if (slot >= 0) return { depth, slot };
    }
    return null;
  }
}

function refuse(node: { type: string }): never {
  throw new SyntaxError(`no ${node.type} in programs run as closures`);
}

function frame_at(frame: Frame, depth: number): Frame {
  let at = frame;
  for (; depth > 0; --depth) at = at.outer as Frame;
  return at;
}

const kBinary: Record<string, (a: never, b: never) => unknown> = {
  "+": (a: number, b: number) => a + b, "-": (a: number, b: number) => a - b, "*": (a: number, b: number) => a * b,
  "/": (a: number, b: number) => a / b, "%": (a: number, b: number) => a % b, "<": (a: number, b: number) => a < b,
  ">": (a: number, b: number) => a > b, "<=": (a: number, b: number) => a <= b, ">=": (a: number, b: number) => a >= b,
  "&": (a: number, b: number) => a & b, "|": (a: number, b: number) => a | b, "^": (a: number, b: number) => a ^ b,
  "<<": (a: number, b: number) => a << b, ">>": (a: number, b: number) => a >> b, ">>>": (a: number, b: number) => a >>> b,
  "==": (a: unknown, b: unknown) => a == b, "!=": (a: unknown, b: unknown) => a != b,
  "===": (a: unknown, b: unknown) => a === b, "!==": (a: unknown, b: unknown) => a !== b,
  in: (a: PropertyKey, b: object) => a in b, instanceof: (a: unknown, b: new () => unknown) => a instanceof b,
};
const kUnary: Record<string, (a: never) => unknown> = {
  "!": (a: unknown) => !a, "-": (a: number) => -a, "+": (a: number) => +a, "~": (a: number) => ~a,
  typeof: (a: unknown) => typeof a, void: () => undefined,
};

function load(name: string, scope: Scope): Value {
  const place = scope.find(name);
  if (place === null) {
    if (!kGlobals.has(name)) throw new ReferenceError(`${name} is not known to programs run as closures`);
    const value = kGlobals.get(name);
    return () => value;
  }
  const { depth, slot } = place;
  if (depth === 0) return (frame) => frame.values[slot];
  if (depth === 1) return (frame) => (frame.outer as Frame).values[slot];
  return (frame) => frame_at(frame, depth).values[slot];
}

function key_of(node: AnyNode, computed: boolean, scope: Scope): Value {
  if (computed) return expression(node as Expression, scope);
  if (node.type === "Identifier") return constant(node.name);
  return node.type === "Literal" ? constant(String(node.value)) : refuse(node);
}

function constant(value: unknown): Value {
  return () => value;
}

function store_to(target: Pattern | Expression, scope: Scope): Store {
  if (target.type === "Identifier") {
    const place = scope.find(target.name);
    if (place === null) return refuse(target);
    return (frame, value) => void (frame_at(frame, place.depth).values[place.slot] = value);
  }
  if (target.type !== "MemberExpression") return refuse(target);
  const object = expression(target.object as Expression, scope);
  const key = key_of(target.property, target.computed, scope);
  return (frame, value) => void ((object(frame) as Bag)[key(frame) as string] = value);
}

function calls(node: AnyNode & { type: "CallExpression" }, scope: Scope): Value {
  const given = node.arguments.map((each) => expression(each as Expression, scope));
  const all = (frame: Frame) => given.map((each) => each(frame));
  if (node.callee.type === "MemberExpression") {
    const object = expression(node.callee.object as Expression, scope);
    const key = key_of(node.callee.property, node.callee.computed, scope);
    return (frame) => {
      const self = object(frame) as Record<string, (...values: unknown[]) => unknown>;
      return (self[key(frame) as string] as (...values: unknown[]) => unknown).apply(self, all(frame));
    };
  }
  const callee = expression(node.callee as Expression, scope);
  return (frame) => (callee(frame) as (...values: unknown[]) => unknown)(...all(frame));
}

function assigns(node: AnyNode & { type: "AssignmentExpression" }, scope: Scope): Value {
  const store = store_to(node.left, scope);
  const right = expression(node.right, scope);
  let value = right;
  if (node.operator !== "=") {
    const operate = kBinary[node.operator.slice(0, -1)] ?? refuse(node);
    const left = expression(node.left as Expression, scope);
    value = (frame) => operate(left(frame) as never, right(frame) as never);
  }
  return (frame) => {
    const result = value(frame);
    store(frame, result);
    return result;
  };
}

function updates(node: AnyNode & { type: "UpdateExpression" }, scope: Scope): Value {
  const load_it = expression(node.argument, scope);
  const store = store_to(node.argument, scope);
  const by = node.operator === "++" ? 1 : -1;
  return (frame) => {
    const before = Number(load_it(frame));
    store(frame, before + by);
    return node.prefix ? before + by : before;
  };
}

function makes_object(node: AnyNode & { type: "ObjectExpression" }, scope: Scope): Value {
  const fields = node.properties.map((property) => {
    if (property.type !== "Property" || property.kind !== "init") return refuse(property);
    return { key: key_of(property.key, property.computed, scope), value: expression(property.value as Expression, scope) };
  });
  return (frame) => {
    const made: Bag = {};
    for (const { key, value } of fields) made[key(frame) as string] = value(frame);
    return made;
  };
}

function chooses(node: AnyNode & { type: "LogicalExpression" }, scope: Scope): Value {
  const left = expression(node.left, scope), right = expression(node.right, scope);
  if (node.operator === "&&") return (frame) => left(frame) && right(frame);
  return node.operator === "||" ? (frame) => left(frame) || right(frame) : refuse(node);
}

function expression(node: Expression | AnyNode, scope: Scope): Value {
  switch (node.type) {
    case "Literal": return constant(node.value);
    case "Identifier": return load(node.name, scope);
    case "ThisExpression": return (frame) => frame.self;
    case "FunctionExpression": return makes_function(node, scope);
    case "CallExpression": return calls(node, scope);
    case "AssignmentExpression": return assigns(node, scope);
    case "UpdateExpression": return updates(node, scope);
    case "LogicalExpression": return chooses(node, scope);
    case "ObjectExpression": return makes_object(node, scope);
    case "ArrayExpression": {
      const items = node.elements.map((each) => each === null ? refuse(node) : expression(each as Expression, scope));
      return (frame) => items.map((each) => each(frame));
    }
    case "MemberExpression": {
      const object = expression(node.object as Expression, scope), key = key_of(node.property, node.computed, scope);
      return (frame) => (object(frame) as Bag)[key(frame) as string];
    }
    case "BinaryExpression": {
      const left = expression(node.left as Expression, scope), right = expression(node.right, scope);
      const operate = kBinary[node.operator] ?? refuse(node);
      return (frame) => operate(left(frame) as never, right(frame) as never);
    }
    case "UnaryExpression": {
      const operate = kUnary[node.operator] ?? refuse(node), argument = expression(node.argument, scope);
      return (frame) => operate(argument(frame) as never);
    }
    case "ConditionalExpression": {
      const test = expression(node.test, scope);
      const yes = expression(node.consequent, scope), no = expression(node.alternate, scope);
      return (frame) => (test(frame) ? yes(frame) : no(frame));
    }
    case "SequenceExpression": {
      const parts = node.expressions.map((each) => expression(each, scope));
      return (frame) => parts.reduce<unknown>((_, each) => each(frame), undefined);
    }
    case "NewExpression": {
      const made = expression(node.callee as Expression, scope);
      const given = node.arguments.map((each) => expression(each as Expression, scope));
      return (frame) => Reflect.construct(made(frame) as new () => object, given.map((each) => each(frame)));
    }
    default: return refuse(node);
  }
}

function declares(node: AnyNode & { type: "VariableDeclaration" }, scope: Scope): Step {
  const stores = node.declarations.filter((each) => each.init).map((each) => {
    return { store: store_to(each.id, scope), value: expression(each.init as Expression, scope) };
  });
  return (frame) => {
    for (const { store, value } of stores) store(frame, value(frame));
    return null;
  };
}

function loops(test: Value, update: Value, body: Step): Step {
  return (frame) => {
    for (; test(frame); update(frame)) {
      const outcome = body(frame);
      if (outcome === kBreak) break;
      if (outcome !== null && outcome !== kContinue) return outcome;
    }
    return null;
  };
}

function sequence(nodes: readonly AnyNode[], scope: Scope): Step {
  const steps = nodes.map((each) => statement(each, scope));
  return (frame) => {
    for (const step of steps) {
      const outcome = step(frame);
      if (outcome !== null) return outcome;
    }
    return null;
  };
}

function statement(node: AnyNode, scope: Scope): Step {
  switch (node.type) {
    case "EmptyStatement": return () => null;
    case "BlockStatement": return sequence(node.body, scope);
    case "VariableDeclaration": return declares(node, scope);
    case "BreakStatement": return node.label ? refuse(node) : () => kBreak;
    case "ContinueStatement": return node.label ? refuse(node) : () => kContinue;
    case "ExpressionStatement": {
      const value = expression(node.expression, scope);
      return (frame) => (value(frame), null);
    }
    case "ReturnStatement": {
      const value = node.argument ? expression(node.argument, scope) : constant(undefined);
      return (frame) => ({ value: value(frame) });
    }
    case "IfStatement": {
      const test = expression(node.test, scope), yes = statement(node.consequent, scope);
      const no = node.alternate ? statement(node.alternate, scope) : () => null;
      return (frame) => (test(frame) ? yes(frame) : no(frame));
    }
    case "WhileStatement": return loops(expression(node.test, scope), () => null, statement(node.body, scope));
    case "ForStatement": {
      const begin = !node.init ? () => null : node.init.type === "VariableDeclaration" ? declares(node.init, scope)
                                            : expression(node.init, scope);
      const test = node.test ? expression(node.test, scope) : constant(true);
      const loop = loops(test, node.update ? expression(node.update, scope) : () => null, statement(node.body, scope));
      return (frame) => (begin(frame), loop(frame));
    }
    default: return refuse(node);
  }
}

/** `var` belongs to the whole function: all names are known before the first statement is looked at. */
function declare_all(value: unknown, scope: Scope): void {
  if (Array.isArray(value)) {
    for (const each of value) declare_all(each, scope);
  } else if (typeof value === "object" && value !== null && "type" in value) {
    const node = value as AnyNode;
    if (node.type === "FunctionExpression") return;
    if (node.type === "VariableDeclarator") scope.declare(node.id.type === "Identifier" ? node.id.name : refuse(node.id));
    for (const part of Object.values(node)) declare_all(part, scope);
  }
}

function makes_function(node: FunctionNode, outer: Scope): Value {
  const scope = new Scope(outer);
  for (const parameter of node.params) scope.declare(parameter.type === "Identifier" ? parameter.name : refuse(parameter));
  const count = scope.names.length;
  declare_all(node.body, scope);
  const body = statement(node.body as AnyNode, scope);
  return (frame) => function (this: unknown, ...given: unknown[]): unknown {
    given.length = count;
    const outcome = body({ values: given, self: this, outer: frame });
    return outcome !== null && typeof outcome === "object" ? outcome.value : undefined;
  };
}

/** As `new Function(...names, body)`, which the policy forbids. Throws on what it does not know. */
export function function_from(names: readonly string[], body: string): (...given: unknown[]) => unknown {
  const text = `(function(${names.join(",")}){${body}\n})`;
  const program = parse(text, { ecmaVersion: 5 });
  const first = program.body[0];
  if (program.body.length !== 1 || first?.type !== "ExpressionStatement") return refuse(program);
  const made = expression(first.expression, new Scope(null));
  return made({ values: [], self: undefined, outer: null }) as (...given: unknown[]) => unknown;
}
