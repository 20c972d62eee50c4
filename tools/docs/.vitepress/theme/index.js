import DefaultTheme from 'vitepress/theme';
// oxlint-disable-next-line import/no-unassigned-import
import './style.css';

// VitePress requires a default export.
// oxlint-disable-next-line import/no-default-export
export default DefaultTheme;
