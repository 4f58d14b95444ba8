from tercet.encoders.openvino.library import import_openvino

import_openvino()  # before the modules of this package import it
