/** What JSX is compiled to: the build injects it. */
export { Fragment, h } from 'preact';
