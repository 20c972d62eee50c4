import { useState } from 'preact/hooks';
import { signIn } from '../state/session.js';
import { Field, Form } from '../ui/field.js';
import { Failure } from '../ui/states.js';

/** Asks for a token. It is kept in the session storage of this tab only. */
export function SignInPage({ problem }: { readonly problem: string | null }) {
  const [token, setToken] = useState('');
  return (
    <main class="sign-in">
      <h1>Headgate</h1>
      <p>This server needs a token. It is kept in this tab until you close it or sign out.</p>
      <Form label="Sign in" onSubmit={() => void signIn(token.trim())}>
        <Field label="Token" kind="secret" value={token} onInput={setToken} placeholder="hg_..." required />
        <button type="submit" class="primary">
          Sign in
        </button>
      </Form>
      {problem === null ? null : <Failure message={problem} />}
      <p class="muted">
        <code>headgate token create</code> makes a token.
      </p>
    </main>
  );
}
