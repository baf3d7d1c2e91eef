/** Files that a user drops on the page. */
import { useEffect } from 'preact/hooks';

/** Takes files that are dropped anywhere on the page, while the component is shown. @param take the same at each render */
export function useDroppedFiles(take: (files: FileList) => void): void {
  useEffect(() => {
    const over = (event: DragEvent): void => {
      if (event.dataTransfer?.types.includes('Files') !== true) return;
      event.preventDefault();
    };
    const drop = (event: DragEvent): void => {
      if (event.dataTransfer === null || event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      take(event.dataTransfer.files);
    };
    document.addEventListener('dragover', over);
    document.addEventListener('drop', drop);
    return () => {
      document.removeEventListener('dragover', over);
      document.removeEventListener('drop', drop);
    };
  }, [take]);
}
